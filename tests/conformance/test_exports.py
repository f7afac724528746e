"""Results on a file system are in S3 before it is deleted, or it is kept, whatever drives it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.backends.airflow import render as render_dag
from orchestration.errors import StartError, UnsupportedError
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import BACKENDS, Backend, Outcome, agree, data, jobs
from tests.conformance.test_faults import endure, failed, lost, start, throttled

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

EXPORT = {"Type": "EXPORT_TO_REPOSITORY"}
STANDS = (
    "; file system <id> stands while its tag orchestration:keep-for-h is not 0: export its files "
    "by a data repository task, and delete it; a deployed sweep deletes it 24 h after the run"
)


def everywhere(folder: Path, airflow: LocalAirflow, *faults: Fault) -> dict[Backend, Outcome]:
    pipeline, folder = pipelines.exporting(), data(folder)
    return {b: endure(pipeline, b, folder, airflow, ([*faults],)) for b in BACKENDS}


def objects(outcome: Outcome) -> list[str]:
    """The keys of what was exported, behind the run's identity."""
    keys = outcome.state["s3"]["workspace"]
    return [key.partition("/staging/")[2] for key in keys if "/staging/results/" in key]


def tags(outcome: Outcome) -> dict[str, str]:
    [system] = outcome.state["fsx"]["FileSystems"].values()
    return {tag["Key"]: tag["Value"] for tag in system["Tags"]}


def test_results_are_in_s3_when_the_file_system_is_gone(
    tmp_path: Path, airflow: LocalAirflow
) -> None:
    started = replace(lost("fsx", "CreateDataRepositoryTask"), matching=EXPORT)
    polls = throttled("fsx", "DescribeDataRepositoryTasks")
    outcomes = everywhere(tmp_path, airflow, started, polls, lost("fsx", "TagResource"))
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["staging"] == {"exported_files": 2}
        assert objects(outcome) == ["results/run/two words + ü.txt", "results/summary.json"]
        assert outcome.state["fsx"]["FileSystems"] == {}
        exports = [
            t for t in outcome.state["fsx"]["DataRepositoryTasks"] if EXPORT.items() <= t.items()
        ]
        assert [(task["Paths"], task["Lifecycle"]) for task in exports] == [
            (["results"], "SUCCEEDED")
        ]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        pytest.param(
            Fault.job("EXPORT", operation="CreateDataRepositoryTask"),
            "injected failure, exit code: 1",
            id="failed",
        ),
        pytest.param(
            Fault(
                "fsx",
                "CreateDataRepositoryTask",
                "AccessDeniedException",
                "not authorized",
                times=50,
                matching=EXPORT,
            ),
            "CreateDataRepositoryTask staging.export: not authorized",
            id="denied",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            replace(throttled("fsx", "CreateDataRepositoryTask", 50), matching=EXPORT),
            "CreateDataRepositoryTask staging.export: Rate exceeded",
            id="throttled",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_failed_export_fails_the_run_and_keeps_the_file_system(
    fault: Fault, cause: str, tmp_path: Path, airflow: LocalAirflow
) -> None:
    outcomes, causes = everywhere(tmp_path, airflow, fault), set[str]()
    for outcome in outcomes.values():
        assert (outcome.last.state, outcome.last.error) == ("failed", "ExportFailed")
        causes.add(normal.anonymous(outcome.last.cause))
        assert tags(outcome)["orchestration:keep-for-h"] == "24"
        assert not jobs(outcome, "DeleteFileSystem")
        assert not failed("DeleteFileSystem", outcome)
        assert objects(outcome) == []
    assert len(causes) == 1
    assert cause + STANDS in causes.pop()


@pytest.mark.thorough
def test_of_a_run_that_fails_before_nothing_is_exported(
    tmp_path: Path, airflow: LocalAirflow
) -> None:
    outcomes = everywhere(tmp_path, airflow, Fault.capacity("train"))
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.error == "JobFailed"
        assert outcome.state["fsx"]["FileSystems"] == {}
        assert objects(outcome) == []
        assert not jobs(outcome, "TagResource")


def test_a_kept_file_system_serves_the_next_run_with_what_is_new_in_s3(tmp_path: Path) -> None:
    folder = data(tmp_path)
    with EmbeddedAws(time_scale=0.005) as aws:
        first = start(pipelines.kept(), "step-functions", aws, folder)
        (folder / "train" / "new.csv").write_text("new")
        second = start(pipelines.kept(), "step-functions", aws, folder)
        state = aws.state()["fsx"]
        exported = aws.client("s3").get_object(Bucket="incoming", Key="results/summary.json")
        seen = json.loads(exported["Body"].read())
    assert [r.state for r in (first, second)] == ["succeeded"] * 2, second.cause
    [system] = state["FileSystems"].values()
    tags = {tag["Key"]: tag["Value"] for tag in system["Tags"]}
    [train] = [stage for stage in second.stages if stage.name == "train"]
    assert train.job_names[0].endswith(tags["orchestration:run"])
    assert tags["orchestration:keep-for-h"] == "48"
    assert "new.csv" in seen
    assert len(state["DataRepositoryAssociations"]) == 2


def test_a_kept_file_system_that_could_not_be_filled_is_deleted(tmp_path: Path) -> None:
    fault = Fault.job("IMPORT", operation="CreateDataRepositoryTask")
    with EmbeddedAws(time_scale=0.005) as aws:
        aws.inject(fault)
        report = start(pipelines.kept(), "step-functions", aws, data(tmp_path))
        assert aws.state()["fsx"]["FileSystems"] == {}
    assert report.error == "JobFailed"


def test_two_runs_at_once_share_a_kept_file_system(tmp_path: Path) -> None:
    folder = data(tmp_path)
    with EmbeddedAws(time_scale=0.005) as aws, ThreadPoolExecutor() as pool:
        made = [pipelines.kept()] * 2
        reports = list(pool.map(lambda p: start(p, "step-functions", aws, folder), made))
        state = aws.state()["fsx"]
    assert [report.state for report in reports] == ["succeeded"] * 2, [r.cause for r in reports]
    assert len(state["FileSystems"]) == 1


def test_what_nothing_would_delete_is_refused(tmp_path: Path) -> None:
    words = "nothing deletes what a run keeps for later ones; run it on Step Functions"
    with pytest.raises(UnsupportedError, match=f"staging.guard: on Airflow {words}"):
        render_dag(pipelines.kept().lower())
    with EmbeddedAws() as aws, pytest.raises(StartError, match=f"in a direct run {words}"):
        start(pipelines.kept(), "direct", aws, data(tmp_path))
