"""A pipeline runs in its own region, whatever runs it, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.errors import LocalError
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from tests.airflow.workflows import training, workflow
from tests.conformance import pipelines
from tests.conformance.test_conformance import data

REGION = "us-west-2"
OTHER = (
    "pipeline {} runs in us-west-2, and {} is for {}; use one for us-west-2, or change the region "
    "of the pipeline"
)


def western(pipeline: Pipeline) -> Pipeline:
    image = pipelines.IMAGE.replace("us-east-1", REGION)
    stages = [
        stage.model_copy(update={"image": image}) if hasattr(stage, "image") else stage
        for stage in pipeline.stages
    ]
    return Pipeline(**{**dict(pipeline), "stages": stages, "region": REGION})


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(region="eu-west-1") as embedded:
        yield embedded


@pytest.mark.slow
@pytest.mark.toolkit
@pytest.mark.parametrize("on", ["direct", "airflow", "step-functions"])
def test_every_call_of_a_run_goes_to_the_pipelines_region(
    on: On, tmp_path: Path, airflow: LocalAirflow
) -> None:
    report = run(
        western(pipelines.served()),
        on=on,
        parameters=pipelines.PARAMETERS,
        uploads={pipelines.PARAMETERS["data"]: data(tmp_path)},
        airflow=airflow,
        time_scale=0.005,
    )
    assert report.state == "succeeded", (report.error, report.cause, report.log)
    services = {call.service for call in report.calls}
    assert {"s3", "sagemaker", "sagemaker-runtime"} <= services
    assert {call.region for call in report.calls} == {REGION}


@pytest.mark.parametrize("on", ["direct", "airflow", "step-functions"])
def test_an_account_of_another_region_is_refused(on: On, aws: EmbeddedAws) -> None:
    before = len(aws.calls(include_jobs=True))
    with pytest.raises(LocalError) as caught:
        run(western(pipelines.served()), on=on, aws=aws, parameters=pipelines.PARAMETERS)
    assert str(caught.value) == OTHER.format("served", "the embedded AWS", "eu-west-1")
    assert len(aws.calls(include_jobs=True)) == before


def test_a_dag_of_another_region_is_refused_by_an_airflow_of_its_own(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    elsewhere = replace(workflow(training("a.job")), region=REGION)
    with pytest.raises(LocalError, match=r"runs in us-west-2, and the embedded AWS is for eu-w"):
        airflow.run(elsewhere, aws=aws)
