"""The digits classifier in production: judged against what serves, and moved in by a canary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run
from tests.conformance import pipelines
from tests.conformance.test_conformance import ROOT, layout

# Three runs of a tournament and a canary: minutes on each driver.
pytestmark = [pytest.mark.toolkit, pytest.mark.slow, pytest.mark.thorough]

GIVEN = {
    "bucket": "production",
    "data": "s3://production/digits",
    "training_image": pipelines.IMAGE,
    "inference_image": pipelines.IMAGE,
}


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_a_better_model_takes_over_by_a_canary_and_an_equal_one_does_not(
    on: On, airflow: LocalAirflow, tmp_path: Path
) -> None:
    folder = layout(ROOT / "examples/digits/data", tmp_path / "digits", "*.csv.gz")
    pipeline = Pipeline.load(ROOT / "examples/digits/production.yaml")
    with EmbeddedAws(time_scale=0.005) as aws:
        aws.client("s3").create_bucket(Bucket="production")

        def retrained(epochs: int) -> RunReport:
            given: dict[str, Any] = {**GIVEN, "epochs": epochs}
            return run(
                pipeline, on=on, aws=aws, airflow=airflow, parameters=given,
                uploads={"s3://production/digits/": folder},
            )  # fmt: skip

        first, second, third = retrained(1), retrained(2), retrained(2)
        models = aws.state()["sagemaker"]["Models"]
    assert [report.state for report in (first, second, third)] == ["succeeded"] * 3, second.cause
    outputs: list[Any] = [report.outputs for report in (first, second, third)]
    alone, beaten, kept = (each["tournament"] for each in outputs)
    assert (alone["outcome"], alone["champion"]) == ("promoted", None)
    assert beaten["outcome"] == "promoted"
    assert beaten["champion"] == alone["best_checkpoint"]
    assert beaten["best_metric"] > beaten["champion_metric"] == alone["best_metric"]
    assert beaten["interval_low"] > 0
    assert (kept["outcome"], kept["champion"]) == ("champion_kept", beaten["best_checkpoint"])
    assert outputs[2]["deploy"]["endpoint_name"] is None
    [update] = [call for call in second.calls if call.operation == "UpdateEndpoint"]
    moving = update.request["DeploymentConfig"]["BlueGreenUpdatePolicy"]
    assert moving["TrafficRoutingConfiguration"]["Type"] == "CANARY"
    assert not [call for call in third.calls if call.operation == "UpdateEndpoint"]
    assert len(models) == 2
