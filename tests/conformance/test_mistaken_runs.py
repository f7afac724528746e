"""Natural mistakes that only a run finds are told alike by each driver, or as the table says."""

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
# An error of each origin: parameters, an expression, AWS's own, one of ours, a job, a report.
FEW = (
    "two mistakes in the parameters at once",
    "a path where an S3 URI belongs",
    "a bucket with a slip",
    "a channel without data",
    "no checkpoint below the prefix",
    "a training script raises",
    "a metric of another name",
    "an object that does not exist",
)


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


def alike(case: dict[str, Any], driver: str, said: tuple[str | None, str | None]) -> None:
    """Compare with the words of the table: the driver's own, or else those of all."""
    expected = {**case, **case.get(driver, {})}
    text = " ".join(str(said[1]).split())
    assert said[0] == expected["error"], text
    assert [words for words in expected["cause"] if words not in text] == [], text
    read = way_out(str(said[0]), text)
    assert [words for words in expected["way_out"] if words not in read] == [], read


def forget_endpoint(aws: EmbeddedAws) -> None:
    """Delete what a failed deployment leaves, which the next one would be told of."""
    sagemaker = aws.client("sagemaker")
    for endpoint in sagemaker.list_endpoints(NameContains="mistakes")["Endpoints"]:
        sagemaker.delete_endpoint(EndpointName=endpoint["EndpointName"])


@pytest.mark.parametrize("name", FEW)
def test_a_mistake_on_step_functions(name: str, aws: EmbeddedAws, tmp_path: Path) -> None:
    [case] = [each for each in MISTAKES if each["mistake"] == name]
    alike(case, "step_functions", told(case, aws, tmp_path))


@pytest.mark.thorough
@ALL
def test_each_mistake_on_step_functions(
    case: dict[str, Any], aws: EmbeddedAws, tmp_path: Path
) -> None:
    forget_endpoint(aws)
    alike(case, "step_functions", told(case, aws, tmp_path))


@pytest.mark.thorough
@ALL
def test_each_mistake_on_airflow(
    case: dict[str, Any], aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    forget_endpoint(aws)
    said = told(case, aws, tmp_path, airflow)
    alike(case, "airflow", said)
    if "airflow" not in case:
        forget_endpoint(aws)
        beside = tmp_path / f"{tmp_path.name}-direct"
        beside.mkdir()
        other = directly(case, aws, beside)
        assert normal.anonymous(said) == normal.anonymous(other)
