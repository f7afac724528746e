"""Requests to FSx for Lustre that break its rules, each of them once, and some that keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.breaking.jobs import ELSEWHERE
from tests.local.conftest import BUCKET, wait

SUBNET = "subnet-0123456789abcdef0"
LINKABLE = {"FileSystemTypeVersion": "2.15", "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}
METADATA = {"Mode": "USER_PROVISIONED", "Iops": 6000}
TIERED = {
    "DeploymentType": "PERSISTENT_2",
    "ThroughputCapacity": 4000,
    "DataReadCacheConfiguration": {"SizingMode": "NO_CACHE"},
    "MetadataConfiguration": METADATA,
}


def creation(**more: Any) -> dict[str, Any]:
    request = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [SUBNET],
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
        **more,
    }
    return {key: value for key, value in request.items() if value is not None}


def persistent(number: int = 2, /, **more: Any) -> dict[str, Any]:
    throughput = 125 if number == 2 else 100
    lustre = {"DeploymentType": f"PERSISTENT_{number}", "PerUnitStorageThroughput": throughput}
    return {k: v for k, v in {**lustre, **more}.items() if v is not None}


def disks(capacity: int, **more: Any) -> dict[str, Any]:
    lustre = persistent(1, PerUnitStorageThroughput=40, **more)
    return creation(StorageType="HDD", StorageCapacity=capacity, LustreConfiguration=lustre)


def tiered(capacity: int | None = None, **more: Any) -> dict[str, Any]:
    lustre = {key: value for key, value in {**TIERED, **more}.items() if value is not None}
    return creation(
        StorageType="INTELLIGENT_TIERING", StorageCapacity=capacity, LustreConfiguration=lustre
    )


CREATIONS = {
    "one subnet": creation(SubnetIds=[SUBNET, "subnet-0123456789abcdef1"]),
    "subnets exist": creation(SubnetIds=["subnet-0123456789abcdef9"]),
    "security groups exist": creation(SecurityGroupIds=["sg-0123456789abcdef9"]),
    "capacity of SSD": creation(StorageCapacity=3600),
    "capacity of SCRATCH_1": creation(StorageCapacity=4800, LustreConfiguration={}),
    "capacity of HDD": disks(2000, DriveCacheType="NONE"),
    "no capacity with tiering": tiered(1200),
    "storage types": creation(StorageType="HDD"),
    "drive cache of HDD": disks(1800),
    "throughput is required": creation(LustreConfiguration={"DeploymentType": "PERSISTENT_2"}),
    "throughput is for persistent": creation(
        LustreConfiguration={"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": 125}
    ),
    "throughput exists": creation(LustreConfiguration=persistent(PerUnitStorageThroughput=200)),
    "versions": creation(FileSystemTypeVersion="2.11"),
    "version of PERSISTENT_2": creation(
        FileSystemTypeVersion="2.10", LustreConfiguration=persistent()
    ),
    "version of metadata": creation(
        FileSystemTypeVersion="2.12",
        LustreConfiguration=persistent(MetadataConfiguration={"Mode": "AUTOMATIC"}),
    ),
    "metadata is for PERSISTENT_2": creation(
        FileSystemTypeVersion="2.15",
        LustreConfiguration=persistent(1, MetadataConfiguration=METADATA),
    ),
    "metadata IOPS": creation(
        LustreConfiguration=persistent(MetadataConfiguration={**METADATA, "Iops": 7000})
    ),
    "automatic metadata": creation(
        LustreConfiguration=persistent(MetadataConfiguration={"Mode": "AUTOMATIC", "Iops": 6000})
    ),
    "EFA": creation(LustreConfiguration=persistent(EfaEnabled=True)),
    "tiered throughput": tiered(ThroughputCapacity=4100),
    "tiered cache": tiered(DataReadCacheConfiguration=None),
    "backups": creation(
        LustreConfiguration={"DeploymentType": "SCRATCH_2", "AutomaticBackupRetentionDays": 7}
    ),
    "import path of PERSISTENT_2": creation(
        LustreConfiguration=persistent(ImportPath=f"s3://{BUCKET}/x")
    ),
    "import path exists": creation(
        LustreConfiguration={"DeploymentType": "SCRATCH_2", "ImportPath": "s3://no-such-bucket/x"}
    ),
}
ACCEPTED = {
    "1200 GiB": creation(),
    "4800 GiB": creation(StorageCapacity=4800),
    "scratch 1": creation(StorageCapacity=3600, LustreConfiguration={}),
    "disks": disks(1800, DriveCacheType="READ"),
    "persistent 1": creation(LustreConfiguration=persistent(1)),
    "EFA": creation(
        LustreConfiguration=persistent(EfaEnabled=True, MetadataConfiguration={"Mode": "AUTOMATIC"})
    ),
    "tiered": tiered(),
}
DEFAULT_VERSIONS = {
    "2.10": creation(),
    "2.12": creation(LustreConfiguration=persistent()),
    "2.15": creation(LustreConfiguration=persistent(MetadataConfiguration=METADATA)),
}


class Systems:
    """Available file systems of each kind, made when they are first asked for."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws, self.fsx = aws, aws.client("fsx")
        self._known: dict[str, str] = {}

    def new(self, **request: Any) -> str:
        """Return the id of a file system that is available."""
        made = self.fsx.create_file_system(**creation(**request))["FileSystem"]["FileSystemId"]
        self._wait(made, "AVAILABLE")
        return str(made)

    def linked(self, **more: Any) -> str:
        """Return the id of a file system whose ``/one`` is linked."""
        system = self.new(**LINKABLE)
        self.link(system, "/one", f"s3://{BUCKET}/one/", **more)
        return system

    def link(self, system: str, path: str, repository: str, **more: Any) -> None:
        made = self.fsx.create_data_repository_association(
            FileSystemId=system, FileSystemPath=path, DataRepositoryPath=repository, **more
        )["Association"]["AssociationId"]
        wait(
            lambda: self.fsx.describe_data_repository_associations(AssociationIds=[made])[
                "Associations"
            ][0],
            lambda association: association["Lifecycle"] == "AVAILABLE",
        )

    def task(self, system: str, kind: str = "IMPORT_METADATA_FROM_REPOSITORY", **more: Any) -> str:
        request = {"Report": {"Enabled": False}, **more}
        made = self.fsx.create_data_repository_task(FileSystemId=system, Type=kind, **request)
        return str(made["DataRepositoryTask"]["TaskId"])

    def ended(self, task: str) -> None:
        wait(
            lambda: self.fsx.describe_data_repository_tasks(TaskIds=[task])["DataRepositoryTasks"][
                0
            ],
            lambda described: described["Lifecycle"] == "SUCCEEDED",
        )

    def _wait(self, system: str, lifecycle: str) -> None:
        wait(
            lambda: self.fsx.describe_file_systems(FileSystemIds=[system])["FileSystems"][0],
            lambda described: described["Lifecycle"] == lifecycle,
        )


def _unavailable(systems: Systems) -> None:
    made = systems.fsx.create_file_system(**creation(**LINKABLE))["FileSystem"]["FileSystemId"]
    systems.link(made, "/one", f"s3://{BUCKET}/one/")


def _old_version(systems: Systems) -> None:
    systems.link(systems.new(), "/one", f"s3://{BUCKET}/one/")


def _scratch_1(systems: Systems) -> None:
    system = systems.new(LustreConfiguration={}, FileSystemTypeVersion="2.12")
    systems.link(system, "/one", f"s3://{BUCKET}/one/")


def _tiered(systems: Systems) -> None:
    systems.link(systems.new(**tiered(), StorageCapacity=None), "/one", f"s3://{BUCKET}/one/")


def _import_path(systems: Systems) -> None:
    lustre = {"DeploymentType": "SCRATCH_2", "ImportPath": f"s3://{BUCKET}"}
    system = systems.new(FileSystemTypeVersion="2.12", LustreConfiguration=lustre)
    systems.link(system, "/one", f"s3://{BUCKET}/one/")


def _nine(systems: Systems) -> None:
    system = systems.new(**LINKABLE)
    for number in range(9):
        systems.fsx.create_data_repository_association(
            FileSystemId=system,
            FileSystemPath=f"/{number}",
            DataRepositoryPath=f"s3://{BUCKET}/{number}/",
        )


def _relative(systems: Systems) -> None:
    systems.link(systems.new(**LINKABLE), "one", f"s3://{BUCKET}/one/")


def _inside_path(systems: Systems) -> None:
    systems.link(systems.linked(), "/one/two", f"s3://{BUCKET}/two/")


def _inside_prefix(systems: Systems) -> None:
    systems.link(systems.linked(), "/two", f"s3://{BUCKET}/one/two/")


def _no_bucket(systems: Systems) -> None:
    systems.link(systems.new(**LINKABLE), "/one", "s3://no-such-bucket/one/")


def _updates_from_elsewhere(systems: Systems) -> None:
    system, events = systems.new(**LINKABLE), {"Events": ["NEW", "CHANGED"]}
    # Without automatic imports, and for automatic exports, the region does not matter.
    systems.link(system, "/two", f"s3://{ELSEWHERE}/two/", S3={"AutoExportPolicy": events})
    systems.link(system, "/one", f"s3://{ELSEWHERE}/one/", S3={"AutoImportPolicy": events})


def _not_linked(systems: Systems) -> None:
    systems.task(systems.new(**LINKABLE))


def _second_task(systems: Systems) -> None:
    system = systems.linked()
    systems.task(system)
    systems.task(system)


def _auto_export(systems: Systems) -> None:
    system = systems.linked(S3={"AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}})
    systems.task(system, "EXPORT_TO_REPOSITORY")


def _bare_report(systems: Systems) -> None:
    systems.task(systems.linked(), Report={"Enabled": True})


def _cancel_unknown(systems: Systems) -> None:
    systems.fsx.cancel_data_repository_task(TaskId="task-0123456789abcdef0")


def _cancel_ended(systems: Systems) -> None:
    task = systems.task(systems.linked())
    systems.ended(task)
    systems.fsx.cancel_data_repository_task(TaskId=task)


def _delete_during_import(systems: Systems) -> None:
    system = systems.linked()
    systems.task(system)
    systems.fsx.delete_file_system(FileSystemId=system)


LATER: dict[str, Callable[[Systems], None]] = {
    "links need AVAILABLE": _unavailable,
    "links need 2.12": _old_version,
    "links and SCRATCH_1": _scratch_1,
    "links and tiering": _tiered,
    "links and import paths": _import_path,
    "eight links": _nine,
    "absolute paths": _relative,
    "paths do not overlap": _inside_path,
    "prefixes do not overlap": _inside_prefix,
    "bucket exists": _no_bucket,
    "automatic imports in a region": _updates_from_elsewhere,
    "tasks need a link": _not_linked,
    "one task at a time": _second_task,
    "export tasks and auto export": _auto_export,
    "reports": _bare_report,
    "tasks to cancel exist": _cancel_unknown,
    "tasks to cancel run": _cancel_ended,
    "no deletion during a task": _delete_during_import,
}


def _created(rule: str) -> Callable[[Systems], None]:
    def create(systems: Systems) -> None:
        systems.fsx.create_file_system(**CREATIONS[rule])

    return create


BREAKING = {**{rule: _created(rule) for rule in CREATIONS}, **LATER}


def broken(rule: str, aws: EmbeddedAws) -> None:
    """Break a rule."""
    BREAKING[rule](Systems(aws))
