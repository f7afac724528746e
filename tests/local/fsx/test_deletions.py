"""File systems that are deleted, and tasks that are cancelled, while something else ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.clock import Clock
from orchestration.local.account.faults import Faults
from orchestration.local.fsx.associations import Association
from orchestration.local.fsx.service import FileSystems
from orchestration.local.fsx.tasks import IMPORT, Task

SUBNET = "subnet-0123abcd"
SYSTEM = {
    "FileSystemType": "LUSTRE",
    "StorageCapacity": 1200,
    "SubnetIds": [SUBNET],
    "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
}


class Meanwhile(Faults):
    """Faults, at whose look for one something happens."""

    deed: Callable[[], object] = staticmethod(lambda: None)

    @override
    def for_job(self, operation: str, name: str) -> str | None:
        self.deed()
        return super().for_job(operation, name)


def test_a_file_system_that_is_deleted_while_it_is_created_stays_so(tmp_path: Path) -> None:
    faults = Meanwhile()
    account = Account("us-east-1", Clock(1), tmp_path, {}, faults=faults)
    account.networks.provide([SUBNET], [])
    service = FileSystems(account)
    made = service.operations["CreateFileSystem"](SYSTEM)["FileSystem"]["FileSystemId"]
    named = {"FileSystemId": made}
    faults.deed = lambda: service.operations["DeleteFileSystem"](named)
    system = service.get(made)
    service._become_available(system)
    assert system.lifecycle == "DELETING"


def test_a_task_that_is_cancelled_while_it_works_is_cancelled() -> None:
    def linked() -> list[Association]:
        task.cancel()
        return []

    task = Task("task-1", "arn", {"FileSystemId": "fs-1", "Type": IMPORT}, linked)
    assert task.begin()
    task.work(None)
    assert (task.lifecycle, task.ended) == ("CANCELING", None)
    task.end("CANCELED")
    assert task.lifecycle == "CANCELED"
    assert not task.begin()
