"""The moments at which a job begins and ends, for whoever looks at it or stops it then."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.clock import Clock
from orchestration.local.account.faults import Faults
from orchestration.local.account.protocol import JsonObject
from orchestration.local.account.records import Fault
from orchestration.local.sagemaker.jobs.lifecycle import Job
from tests.patience import PATIENCE_S


class Ending(Job):
    """A job whose work ends while it is being stopped."""

    kind = "Training"
    arn_word = "training-job"

    def __init__(self, account: Account) -> None:
        super().__init__(account, {"TrainingJobName": "job", "RoleArn": ""})
        self.works = threading.Event()
        self.phases: list[str] = []

    @override
    def run(self) -> None:
        self.works.wait()

    @override
    def enter(self, secondary_status: str, message: str = "") -> None:
        if secondary_status == "Stopping":
            self.works.set()
            # Long enough for an end that does not wait for the stop.
            self._thread.join(0.5)
        self.phases.append(secondary_status)

    @override
    def logs(self) -> str:
        return ""

    @override
    def describe(self) -> JsonObject:
        return {}


class Late(Faults):
    """Faults that are found after a while, as on a machine that is busy."""

    @override
    def job_fault(self, operation: str, name: str, request: Mapping[str, Any]) -> Fault | None:
        time.sleep(0.3)
        return super().job_fault(operation, name, request)


def test_a_job_is_at_work_once_it_is_started(tmp_path: Path) -> None:
    account = Account("us-east-1", Clock(0), tmp_path, {}, faults=Late())
    job = Ending(account)
    job.start()
    assert account.activity.wait(("DescribeTrainingJob", "job"), 0)
    job.works.set()
    assert not account.activity.wait(("DescribeTrainingJob", "job"), PATIENCE_S)


def test_the_end_of_a_job_is_its_last_phase(tmp_path: Path) -> None:
    job = Ending(Account("us-east-1", Clock(0), tmp_path, {}))
    job.start()
    job.stop()
    job._thread.join()
    assert job.phases == ["Stopping", "Completed"]
    assert job.status == "Completed"
