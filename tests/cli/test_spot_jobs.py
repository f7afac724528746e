"""Past spot jobs, as the embedded AWS tells of jobs that have run there."""

from __future__ import annotations

from orchestration.cli.commands.reading.spot_jobs import spot_jobs
from orchestration.local import EmbeddedAws
from orchestration.preflight.reader import Reader
from tests.local.conftest import finished_training, prepare, training_request


def test_jobs_on_spot_are_told_from_those_on_demand(account: EmbeddedAws) -> None:
    prepare(account)
    spot = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    for name, more in (
        ("history-spot", {"EnableManagedSpotTraining": True, "StoppingCondition": spot}),
        ("history-on-demand", {}),
    ):
        request = training_request(name, "s3://none", **more)
        request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["sleep", "0.1"]
        account.client("sagemaker").create_training_job(**request)
        assert finished_training(account, name)["TrainingJobStatus"] == "Completed"
    described = account.client("sagemaker").describe_training_job(TrainingJobName="history-spot")
    [job] = [job for job in spot_jobs(Reader(account)) if job.name.startswith("history-")]
    assert (job.name, job.instance_type) == ("history-spot", "ml.m5.large")
    assert job.day == described["CreationTime"].date()
    assert job.paid == 1.0  # Nothing is cheaper there.
