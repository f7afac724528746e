"""An evaluation of a thousand checkpoints, with a hundred slices, stays within what a run carries.

Most of the jobs fail before they run, since a thousand that run would take an hour here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from orchestration.backends.stepfunctions.events import MOST_EVENTS, RESERVE
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run
from tests.conformance.histories import history, largest
from tests.conformance.test_verdicts import decided, made

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

BUCKET = "many"
FOLDER = "runs" * 54
"""With the names of checkpoints, 230 characters."""
LISTED = 1000
FEW = 10
MOST_BYTES = 256 * 1024
SLICES = {f"language-{number:03}": 0.9 for number in range(100)}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.create_bucket(Bucket="verdicts")
        s3.put_object(Bucket="verdicts", Key="holdout/data", Body=b"x")

        def put(number: int) -> None:
            report = {"metrics": {"accuracy": number / LISTED}, "slices": {"language": SLICES}}
            key = f"{FOLDER}/epoch-{number:06}/evaluation.json"
            s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(report).encode())

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, range(LISTED)))
        yield embedded


def judged(aws: EmbeddedAws, airflow: LocalAirflow, on: On, count: int, **fields: Any) -> RunReport:
    evaluate = decided(
        checkpoints=f"s3://{BUCKET}/{FOLDER}",
        select=None if count == LISTED else {"last": count},
        max_checkpoints=LISTED,
        max_concurrency=40,
        slices={"language": {"minimum": 0.8}},
        **fields,
    )
    report = run(made(f"many-{on}-{count}", evaluate), on=on, aws=aws, airflow=airflow)
    assert (report.cause, report.state) == (None, "succeeded")
    jobs = [call for call in report.calls if call.operation == "CreateProcessingJob"]
    assert len(jobs) == count + 1
    return report


def thousand(aws: EmbeddedAws, airflow: LocalAirflow, on: On) -> None:
    """Evaluate a thousand; all but a few jobs fail before they run, which takes no process."""
    lost = LISTED - FEW
    # Its own job decides; its name begins as theirs.
    aws.inject(Fault.job(f"many-{on}", operation="CreateProcessingJob", times=lost))
    report = judged(aws, airflow, on, LISTED, failures_allowed=lost)
    outputs: Any = report.outputs
    assert outputs["judge"]["outcome"] == "promoted"


def test_a_thousand_checkpoints_fit_an_execution(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    thousand(aws, airflow, "step-functions")
    events = history(aws, f"many-step-functions-{LISTED}")
    # Shown by pytest -rP: what docs/evaluation.md tells is measured here.
    print(f"{len(events)} events, {largest(events)} bytes in the largest payload")  # noqa: T201
    assert len(events) < MOST_EVENTS - RESERVE, len(events)
    assert LISTED * len(FOLDER) < largest(events) < MOST_BYTES, largest(events)


@pytest.mark.parametrize("on", ["direct", "airflow"])
def test_a_thousand_checkpoints_are_evaluated(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    thousand(aws, airflow, on)


def test_a_hundred_slices_stay_in_s3(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    report = judged(aws, airflow, "airflow", FEW)
    outputs: Any = report.outputs
    shown = outputs["judge"]
    assert shown["best_checkpoint"].endswith(f"epoch-{LISTED - 1:06}/")
    assert len(json.dumps(shown)) < 2048
