"""A run that ends while its file system is being filled leaves none, whatever drives it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.local import Fault
from orchestration.local.airflow import LocalAirflow
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import BACKENDS, data, jobs
from tests.conformance.test_faults import endure, failed

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

CODE = "AccessDeniedException"


def denied(operation: str, **matching: None) -> Fault:
    return Fault("fsx", operation, CODE, "not authorized", times=50, matching=matching)


def slow(seconds: float) -> Fault:
    """An import that takes its time, and then fails."""
    fault = Fault.job("IMPORT", operation="CreateDataRepositoryTask")
    return replace(fault, delay_s=seconds)


@pytest.mark.parametrize(
    ("faults", "lifecycle"),
    [
        pytest.param(
            [denied("DescribeDataRepositoryTasks", TaskIds=None), slow(36_000)],
            "CANCELED",
            id="cancelled",
        ),
        pytest.param(
            [
                denied("DescribeDataRepositoryTasks"),
                denied("CancelDataRepositoryTask"),
                slow(900),
            ],
            "FAILED",
            id="waited for",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_run_that_fails_during_the_import_leaves_no_file_system(
    faults: list[Fault], lifecycle: str, tmp_path: Path, airflow: LocalAirflow
) -> None:
    folder, causes = data(tmp_path), set()
    for backend in BACKENDS:
        outcome = endure(pipelines.file_system(), backend, folder, airflow, (faults,))
        assert outcome.last.state == "failed"
        causes.add(normal.anonymous(outcome.last.cause))
        assert outcome.state["fsx"]["FileSystems"] == {}
        assert [t["Lifecycle"] for t in outcome.state["fsx"]["DataRepositoryTasks"]] == [lifecycle]
        assert not jobs(outcome, "CreateTrainingJob")
        assert len(jobs(outcome, "DeleteFileSystem")) == 1
        refused = set(failed("DeleteFileSystem", outcome))
        # A cancelled task may be over before the file system is deleted.
        assert refused == {"BadRequest"} or (not refused and lifecycle == "CANCELED")
    assert len(causes) == 1
