"""Whichever integration starts a job on Step Functions, the run ends in the same way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestration.graph import Integration
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.run import executions
from tests.conformance import normal
from tests.conformance.test_fallbacks import ROLE, SCALE, training, workflow

pytestmark = [pytest.mark.slow]

NEVER = 4_000_000
WAITS = Fault.capacity("fit-", after_s=NEVER)
"""A job that waits for its instances."""


def throttled(times: int, **more: Any) -> Fault:
    how = {"times": times, **more}
    return Fault("sagemaker", "CreateTrainingJob", "ThrottlingException", "Rate exceeded", **how)


def denied(operation: str, times: int = 1) -> Fault:
    text = "User: arn:aws:iam::123456789012:user/me is not authorized"
    return Fault("sagemaker", operation, "AccessDeniedException", text, times=times)


FAULTS: dict[str, tuple[Fault, ...]] = {
    "succeeds": (),
    "fails": (Fault.job("fit-"),),
    "stopped": (WAITS,),
    "throttled": (throttled(2),),
    "adopted": (throttled(1, after_effect=True),),
    "refused": (denied("CreateTrainingJob"),),
    "timed out": (WAITS,),
    "polls refused": (denied("DescribeTrainingJob", 99),),
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=SCALE) as started:
        started.provide(roles=[ROLE])
        started.client("s3").create_bucket(Bucket="workspace")
        yield started


def stop(aws: EmbeddedAws, token: str, ended: threading.Event) -> None:
    """Stop the job as soon as there is one, as a person would."""
    sagemaker: Any = aws.client("sagemaker")
    while not ended.wait(0.1):
        for job in sagemaker.list_training_jobs(NameContains=token)["TrainingJobSummaries"]:
            sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])
            return


def plain(cause: str) -> str:
    """Return a cause without what only one integration knows: the service's own words around it."""
    return cause.removeprefix('"CreateTrainingJob fit--<id>: ').removeprefix('"').split(" (Serv")[0]


def end(aws: EmbeddedAws, what: str, integration: Integration) -> dict[str, Any]:
    # Limits are not scaled, since what really runs takes as long as it takes.
    limits: dict[str, Any] = {"timeout_s": 3.0, "interval_s": 1.0} if what == "timed out" else {}
    made = workflow(replace(training("ml.m5.xlarge", **limits), fallback=None))
    made = replace(made, integrations={"": integration})
    token, ended = f"{what.replace(' ', '-')}-{integration}", threading.Event()
    before = max((call.sequence for call in aws.calls()), default=0)
    for fault in FAULTS[what]:
        aws.inject(fault)
    if what == "stopped":
        threading.Thread(target=stop, args=(aws, token, ended), daemon=True).start()
    run = executions.follow(aws, made, {"token": token}, token, lambda _: None)
    ended.set()
    jobs = aws.state()["sagemaker"]["TrainingJobs"]
    sent = [c for c in aws.calls() if c.operation == "CreateTrainingJob" and c.sequence > before]
    return {
        "state": run.state,
        "outputs": normal.anonymous(run.outputs).replace(token, ""),
        "error": run.error,
        "cause": plain(normal.anonymous(run.cause).replace(token, "")),
        # A job that was told to stop may take a moment.
        "jobs": [
            job["TrainingJobStatus"].replace("Stopping", "Stopped")
            for name, job in jobs.items()
            if token in name
        ],
        "created": [call.error_code for call in sent],
    }


STATES = {"succeeds": "succeeded", "throttled": "succeeded", "adopted": "succeeded"}


@pytest.mark.parametrize("what", FAULTS)
def test_both_integrations_end_a_run_alike(aws: EmbeddedAws, what: str) -> None:
    waited, polled = end(aws, what, "sync"), end(aws, what, "sdk")
    assert (waited.pop("cause").strip('"')) == polled.pop("cause").strip('"')
    assert waited == polled
    assert waited["state"] == STATES.get(what, "failed")
    if what == "timed out":
        assert (waited["error"], waited["jobs"]) == ("TimedOut", ["Stopped"])
