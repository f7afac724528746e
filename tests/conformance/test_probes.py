"""Probes as a pipeline run on every driver, and their jobs say how they trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.cli.commands.checking import probes_of
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.pipeline.probing.jobs import Asked
from orchestration.pipeline.probing.readings import measurement
from orchestration.pipeline.probing.runs import Ran, ran
from orchestration.pipeline.probing.together import together, way_of
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.measured.deciding import deciding
from tests.cli.test_probe import LONG_NAMES, SCRIPT
from tests.conformance.test_afterwards import everywhere
from tests.conformance.test_conformance import BACKENDS

pytestmark = [pytest.mark.slow, pytest.mark.toolkit]


def test_probes_run_on_every_driver_and_are_read_back_without_their_file(
    airflow: LocalAirflow, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(SCRIPT.replace("0.5", "0.05"))
    path = tmp_path / "tiny.yaml"
    # The names of both are cut in those of their probes.
    # Nothing tells the script of its micro-batch: what the jobs say of themselves has to do.
    path.write_text(LONG_NAMES.replace("tell: {micro_batch: batch_size}", "").replace(
        "data_order: 7", "data_order: 7, batch_size: 8"))  # fmt: skip
    asked = Asked(path, None)
    space = asked.request.space()
    plans = deciding(find_plans(asked.task, space, asked.request.goal()), 2)
    probes = together(asked, [asked.probe(plan, space, 4, {}) for plan in plans])
    assert {plan.instance_type for plan in plans} == {"ml.g5.xlarge", "ml.g6.xlarge"}
    (tmp_path / "tiny.probe.yaml").write_text(probes.to_yaml(tmp_path))
    pipeline = Pipeline.load(tmp_path / "tiny.probe.yaml")
    assert pipeline == probes
    with EmbeddedAws(time_scale=0.01) as aws:
        aws.client("s3").create_bucket(Bucket="probes")
        given = {"bucket": "probes"}
        for report in everywhere(pipeline, aws, airflow, parameters=given).values():
            # Running out of memory is what one of them measured; the other is not cut short by it.
            assert (report.state, report.error) == ("failed", "JobFailed")
        client = aws.client("sagemaker")
        listed = [name for name, _ in probes_of(client, asked.pipeline, asked.name)]
        jobs = [client.describe_training_job(TrainingJobName=name) for name in listed]
    assert len(jobs) == 2 * len(BACKENDS)
    for job in jobs:
        assert ran(job, asked.task, {}, None) == (
            "it does not say its batch or micro-batch; add micro_batch to strategy.tell"
        )
        way = ran(job, asked.task, {}, None, way_of(job, asked.pipeline, asked.name))
        assert isinstance(way, Ran)
        [plan] = [each for each in plans if each.instance_type == way.instance_type]
        assert way.configuration == plan.configuration
        reading = measurement(way, job, region="us-east-1", source="probe")
        assert reading is not None
        assert reading.out_of_memory == (way.instance_type == "ml.g6.xlarge")
        # A step sleeps so long; how much longer it takes is up to how busy this machine is.
        assert reading.out_of_memory or 0.04 < (reading.step_time_s or 0) < 5
    assert way_of(jobs[0], asked.pipeline, "another") is None
