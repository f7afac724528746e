"""A kind of stage from outside does the same on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from tests import guides

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with guides.own_stages(tmp_path):
        monkeypatch.syspath_prepend(tmp_path)
        yield tmp_path


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_the_guide_s_stage_runs_on_every_backend(
    folder: Path, on: On, airflow: LocalAirflow
) -> None:
    data = yaml.safe_load((folder / "features.yaml").read_text())
    pipeline = Pipeline.parse(
        {**data, "stages": {"ask": data["stages"]["ask"]}}, stages=["my_stages"]
    )
    with EmbeddedAws(time_scale=0.001) as aws:
        report = run(pipeline, on=on, aws=aws, airflow=airflow, run_id="one")
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        calls = [call.operation for call in report.calls if call.service == "athena"]
    assert calls[0] == "StartQueryExecution"
    assert set(calls[1:]) == {"GetQueryExecution"}
    outputs: Any = report.outputs
    assert outputs["ask"]["result"].startswith("s3://my-bucket/runs/")
