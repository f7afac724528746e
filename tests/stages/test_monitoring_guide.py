"""The monitoring schedule that the deployment guide shows: rendered, valid, and permitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions
from orchestration.checks.requests import violations
from orchestration.graph import Call, all_steps
from tests.guides import DEPLOYMENT, shown
from tests.stages.test_registration import allowed


@pytest.fixture
def watched(tmp_path: Path) -> Pipeline:
    [text] = [block for block in shown(DEPLOYMENT, "yaml") if block.startswith("name: watched")]
    path = tmp_path / "watched.yaml"
    path.write_text(text, encoding="utf-8")
    return Pipeline.load(path)


def test_the_schedule_is_made_once_and_renewed_by_each_run(watched: Pipeline) -> None:
    calls = [each for each in all_steps(watched.lower().graph) if isinstance(each, Call)]
    made, renewed = (
        next(each for each in calls if each.operation.name == f"{verb}MonitoringSchedule")
        for verb in ("Create", "Update")
    )
    assert made.operation.request == renewed.operation.request
    assert made.adopt is not None
    for each in (made, renewed):
        sent = each.operation
        assert not [*violations(sent.service, sent.name, sent.request)]


def test_both_backends_render_it_and_its_role_may_be_passed(watched: Pipeline) -> None:
    workflow = watched.lower()
    assert "UpdateMonitoringSchedule" in str(airflow.render(workflow))
    definition: Any = stepfunctions.render(workflow)
    assert "updateMonitoringSchedule" in str(definition)
    may = allowed(watched)
    assert {"CreateMonitoringSchedule", "UpdateMonitoringSchedule"} <= set(may)
    assert "arn:aws:iam::111122223333:role/SageMaker" in may["PassRole"]
