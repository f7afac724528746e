"""Processes that run a pipeline directly: interrupted, killed, two at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestration.local import Fault
from orchestration.local.server import keeper
from tests.direct.conftest import Account, Launch, until
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.slow]

MOMENTS: dict[str, Callable[[Account], object]] = {
    "journal": lambda account: account.journal(),
    "file system": lambda account: account.file_systems(),
    "association": lambda account: account.sent("CreateDataRepositoryAssociation"),
    "job": lambda account: account.sent("CreateTrainingJob"),
    "job's end": lambda account: account.job() == "Completed",
    "deletion": lambda account: account.sent("DeleteFileSystem"),
}


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def server_of(account: Account) -> int:
    """The process id of the embedded AWS, among what is forked as the accounts of these tests."""
    port = int(account.aws.endpoint_url.rpartition(":")[2])
    servers = psutil.Process(keeper.of_this_process().pid).children()
    [pid] = {each.pid for each in servers for n in connections(each) if is_listening(n, port)}
    return pid


def connections(process: psutil.Process) -> list[Any]:
    """The connections of a process: none of one that has just ended."""
    try:
        return list(process.net_connections())
    except psutil.NoSuchProcess:
        return []


def is_listening(connection: Any, port: int) -> bool:
    return bool(connection.status == psutil.CONN_LISTEN and connection.laddr.port == port)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_stops_the_job_and_deletes_the_file_system(
    account: Account, launch: Launch, training: Path, sent: signal.Signals
) -> None:
    process = launch(training)
    until(lambda: account.job() == "InProgress")
    process.send_signal(sent)
    status, _, err = ended(process)
    assert status == 130, err
    assert "run 'nightly' of sleeping was interrupted: stopped CreateTrainingJob sleeping-t" in err
    assert "and clean-ups have run" in err
    until(lambda: account.job() == "Stopped")
    assert account.file_systems() == []
    # An interrupted run has failed, so the same command tries it again, in a job of its own.
    launch(training)
    until(lambda: account.sent("CreateTrainingJob") == 2)
    first, second = sorted(account.aws.state()["sagemaker"]["TrainingJobs"])
    assert second == f"{first}-2"


def test_a_second_interruption_leaves_at_once_and_the_run_can_go_on(
    account: Account, launch: Launch, training: Path
) -> None:
    process = launch(training, time_scale=0.05)
    until(lambda: account.job() == "InProgress")
    # Deleting is tried again for a quarter of a minute: the clean-up is still under way.
    busy = Fault("fsx", "DeleteFileSystem", "ThrottlingException", "Rate exceeded", times=9)
    account.aws.inject(busy)
    process.send_signal(signal.SIGINT)
    until(lambda: any(c.operation == "DeleteFileSystem" for c in account.aws.calls()))
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130
    assert "interrupt again to leave at once" in err
    assert "what may still run or exist: what staging.create made" in err
    assert "Traceback" not in err
    assert len(account.file_systems()) == 1

    status, out, err = ended(launch(training))
    assert (status, json.loads(out)["error"]) == (1, "JobFailed"), err
    assert account.job() == "Stopped"
    assert account.file_systems() == []


def test_a_second_interruption_does_not_wait_for_requests_that_hang(
    account: Account, launch: Launch, side_by_side: Path
) -> None:
    process = launch(side_by_side)
    until(lambda: account.sent("DescribeTrainingJob") >= 4)
    server = server_of(account)
    os.kill(server, signal.SIGSTOP)
    try:
        time.sleep(1)  # so that both threads are in a request, which botocore gives 60 s
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        # Two signals are one if the second comes before the first is taken.
        assert any("interrupt again to leave at once" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        process.wait(45)
    finally:
        os.kill(server, signal.SIGCONT)
    status, _, err = ended(process)
    assert status == 130
    assert "CreateTrainingJob pair-one-" in err
    assert "CreateTrainingJob pair-two-" in err


_FURTHER = ("association", "deletion")
"""Moments that `make test-faults` has too, each at its call."""


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, marks=pytest.mark.thorough) if moment in _FURTHER else moment
        for moment in MOMENTS
    ],
)
def test_a_run_whose_process_was_killed_goes_on_and_pays_once(
    account: Account, launch: Launch, training: Path, moment: str
) -> None:
    process = launch(training, "seconds=2")
    until(lambda: MOMENTS[moment](account) or process.poll() is not None)
    kill(process)
    status, out, err = ended(launch(training, "seconds=2"))
    assert status == 0, err
    report = json.loads(out)
    assert report["state"] == "succeeded"
    billed = {line["stage"]: line for line in report["billed"]}
    # A file system that the killed process made is not among what this one has seen.
    assert billed.keys() in ({"train"}, {"train", "staging"}), err
    assert billed["train"]["expected_usd"] > 0
    assert account.job() == "Completed"
    assert account.sent("CreateTrainingJob") == 1
    systems = {
        call.request["ClientRequestToken"]
        for call in account.aws.calls(service="fsx")
        if call.operation == "CreateFileSystem"
    }
    assert len(systems) == 1
    assert account.file_systems() == []


def test_two_processes_with_one_run_id_pay_once_and_agree(
    account: Account, launch: Launch, training: Path
) -> None:
    both = [launch(training, "seconds=2") for _ in range(2)]
    ends = [ended(process) for process in both]
    assert [status for status, _, _ in ends] == [0, 0], ends
    first, second = (json.loads(out) for _, out, _ in ends)
    assert first == second
    assert account.job() == "Completed"
    assert account.sent("CreateTrainingJob") == 1
    assert account.file_systems() == []


def test_what_was_listed_before_the_process_died_stays_decided(
    account: Account, launch: Launch, copying: Path
) -> None:
    account.aws.inject(Fault("s3", "CopyObject", "SlowDown", "later", status=503, times=6))
    process = launch(copying)
    until(lambda: any("staging.list" in key for key in account.journal()))
    kill(process)
    account.aws.client("s3").put_object(Bucket="incoming", Key="set/three.csv", Body=b"3")
    status, out, err = ended(launch(copying))
    assert status == 0, err
    assert json.loads(out)["outputs"]["staging"]["object_count"] == 2
