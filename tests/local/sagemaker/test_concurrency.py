"""Jobs whose folders and logs others change while they are looked at."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from moto.logs.models import logs_backends
from moto.s3.models import s3_backends
from typing_extensions import override

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.clock import Clock
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.storage import Caller, Location
from orchestration.local.processes.children import read_end, read_log
from orchestration.local.sagemaker.jobs.checkpoints import CheckpointSync
from orchestration.local.sagemaker.jobs.log_streams import LogStream
from orchestration.local.sagemaker.registry.groups import Groups
from orchestration.local.sagemaker.registry.packages import Packages
from orchestration.local.sagemaker.tags import Tags
from tests.meanwhile import meanwhile

OWN = Caller(ACCOUNT_ID, "us-east-1")


def test_checkpoints_are_copied_while_a_script_removes_others(tmp_path: Path) -> None:
    def save(number: int) -> None:
        (tmp_path / f"{number}" / "shards").mkdir(parents=True)
        (tmp_path / f"{number}" / "shards" / "0").write_text("weights")
        if number >= 20:
            shutil.rmtree(tmp_path / f"{number - 20}")

    with mock_aws():
        s3_backends[ACCOUNT_ID]["aws"].create_bucket("kept", "us-east-1")
        sync = CheckpointSync(tmp_path, "s3://kept/checkpoints", OWN)
        meanwhile(save, sync.upload, 300)
        sync.upload(final=True)
        kept = {each.relative for each in storage.objects(Location("kept", "checkpoints/", OWN))}
    assert {f"{number}/shards/0" for number in range(280, 300)} <= kept


@pytest.mark.parametrize("read", [read_log, read_end])
def test_a_log_is_read_while_its_host_is_lost(tmp_path: Path, read: Callable[[Path], str]) -> None:
    log = tmp_path / "log"

    def lose(_: int) -> None:
        log.write_text("line\n")
        log.unlink()

    meanwhile(lose, lambda: read(log), 2000)
    assert read(log) == ""


def test_jobs_that_start_at_once_have_one_group_of_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(job: str) -> None:
        LogStream(OWN, "/jobs", job, tmp_path / "log")

    with mock_aws():
        backend = logs_backends[ACCOUNT_ID]["us-east-1"]
        create = backend.create_log_group
        second = threading.Thread(target=begin, args=("second",))

        def create_after_another(group: str, tags: dict[str, str]) -> object:
            monkeypatch.undo()
            second.start()
            # Long enough for a job that does not wait for the first one's group.
            second.join(0.5)
            return create(group, tags)

        monkeypatch.setattr(backend, "create_log_group", create_after_another)
        begin("first")
        second.join()
        assert set(backend.groups["/jobs"].streams) == {"first", "second"}


class Overtaken(dict[str, int]):
    """Numbers, which another thread reads and writes between a read and its write."""

    def __init__(self, other: threading.Thread) -> None:
        super().__init__()
        self._others = [other]

    @override
    def get(self, key: str, default: Any = None) -> Any:
        found = super().get(key, default)
        if self._others:
            other = self._others.pop()
            other.start()
            # Long enough for one that does not wait for this.
            other.join(0.5)
        return found


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    account = Account("us-east-1", Clock(0), tmp_path, {})
    groups = Groups(account, Tags(lambda _: True))
    groups.operations()["CreateModelPackageGroup"]({"ModelPackageGroupName": "group"})
    return Packages(account, groups)


def test_versions_that_are_registered_at_once_have_numbers_of_their_own(
    packages: Packages,
) -> None:
    def register() -> None:
        packages.operations()["CreateModelPackage"]({"ModelPackageGroupName": "group"})

    second = threading.Thread(target=register)
    packages._groups.versions = Overtaken(second)
    register()
    second.join()
    made = packages.state().values()
    assert sorted(each["ModelPackageVersion"] for each in made) == [1, 2]


def test_a_package_does_not_change_under_who_reads_it(packages: Packages) -> None:
    made = packages.operations()["CreateModelPackage"]({"ModelPackageGroupName": "group"})
    read = packages.get(made["ModelPackageArn"])
    packages.operations()["UpdateModelPackage"](made)
    assert "LastModifiedTime" not in read
    assert "LastModifiedTime" in packages.get(made["ModelPackageArn"])
