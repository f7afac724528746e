"""Natural mistakes that only a run finds are told alike by each driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import orchestration
from orchestration import RunError
from orchestration.deploy import sources
from orchestration.errors import OrchestrationError
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import executions
from tests.conformance import normal
from tests.direct.test_mistakes import MISTAKES, SCALE, USUAL, pipeline, provide, way_out

pytestmark = pytest.mark.slow
ALL = pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case["mistake"].replace(" ", "-"))
# A direct run looks for its journal before the first step.
APART = "a workspace without its bucket"


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=SCALE) as aws:
        provide(aws)
        yield aws


def told(
    case: dict[str, Any], aws: EmbeddedAws, folder: Path, airflow: LocalAirflow | None = None
) -> tuple[str | None, str | None]:
    """Run a mistake on Step Functions or Airflow."""
    whole = pipeline(case, folder)
    known = {spec.name for spec in whole.parameter_specs()}
    given = {name: value for name, value in USUAL.items() if name in known}
    given = {k: v for k, v in (given | case.get("given", {})).items() if v is not None}
    if given["bucket"] == USUAL["bucket"]:
        sources.upload(whole, given, aws.client("s3"))
    workflow = whole.lower()
    if airflow is None:
        ended = executions.follow(aws, workflow, given, folder.name, lambda _: None)
        return ended.error, ended.cause
    run = airflow.run(workflow, aws=aws, run_id=folder.name, parameters=given, time_scale=SCALE)
    return run.error, run.cause


def directly(case: dict[str, Any], aws: EmbeddedAws, folder: Path) -> tuple[str, str]:
    whole = pipeline(case, folder)
    known = {spec.name for spec in whole.parameter_specs()}
    given = {name: value for name, value in USUAL.items() if name in known}
    given |= case.get("given", {})
    with pytest.raises(OrchestrationError) as caught:
        orchestration.run(whole, given, session=aws, run_id=folder.name)
    error = caught.value
    if isinstance(error, RunError):
        return error.error, error.cause
    return type(error).__name__, str(error)


def alike(case: dict[str, Any], said: tuple[str | None, str | None]) -> None:
    """Compare with the words of the table."""
    text = " ".join(str(said[1]).split())
    assert said[0] == case["error"], text
    assert [words for words in case["cause"] if words not in text] == [], text
    read = way_out(str(said[0]), text)
    assert [words for words in case["way_out"] if words not in read] == [], read


def forget_endpoint(aws: EmbeddedAws) -> None:
    """Delete what a failed deployment leaves, which the next one would be told of."""
    sagemaker = aws.client("sagemaker")
    for endpoint in sagemaker.list_endpoints(NameContains="mistakes")["Endpoints"]:
        sagemaker.delete_endpoint(EndpointName=endpoint["EndpointName"])


@ALL
def test_each_mistake_on_step_functions(
    case: dict[str, Any], aws: EmbeddedAws, tmp_path: Path
) -> None:
    forget_endpoint(aws)
    alike(case, told(case, aws, tmp_path))


@pytest.mark.thorough
@ALL
def test_each_mistake_on_airflow(
    case: dict[str, Any], aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    forget_endpoint(aws)
    said = told(case, aws, tmp_path, airflow)
    alike(case, said)
    if case["mistake"] != APART:
        forget_endpoint(aws)
        beside = tmp_path / f"{tmp_path.name}-direct"
        beside.mkdir()
        other = directly(case, aws, beside)
        assert normal.anonymous(said) == normal.anonymous(other)
