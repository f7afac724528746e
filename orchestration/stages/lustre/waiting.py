"""Waiting for a file system, and what a run reads of it then."""

from __future__ import annotations

from collections.abc import Mapping

from orchestration.expressions import Result, Tree, join
from orchestration.graph import Call, Operation, Output, Path, Until

LIFECYCLE: Path = ("FileSystems", 0, "Lifecycle")
REASON: Path = ("FileSystems", 0, "FailureDetails", "Message")
USABLE = frozenset(["AVAILABLE", "UPDATING"])
"""Lifecycles of a file system, and of an association, that can be worked with."""
_FAILED = frozenset(["FAILED", "MISCONFIGURED", "MISCONFIGURED_UNAVAILABLE", "DELETING"])


def described(system: Tree) -> Operation:
    """The question how a file system is."""
    return Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [system]})


def available(
    name: str,
    system: Tree,
    timeout_s: int,
    after: tuple[str, ...] = (),
    outputs: Mapping[str, Output] | None = None,
) -> Call:
    """The wait until a file system can be used; gives its mount name, and further outputs."""
    return Call(
        name=name,
        operation=described(system),
        until=Until(
            poll=described(system),
            status=LIFECYCLE,
            success=USABLE,
            failure=_FAILED,
            reason=REASON,
            timeout_s=timeout_s,
            outputs={
                "mount_name": Output(
                    ("FileSystems", 0, "LustreConfiguration", "MountName"), kind="string"
                ),
                **(outputs or {}),
            },
        ),
        after=after,
    )


def outputs(system: Tree, mount_name: Result, mount_path: str) -> dict[str, Tree]:
    """Return the outputs of a stage that has a file system."""
    path = mount_path.rstrip("/")
    return {
        "file_system": {"id": system, "directory": join("/", mount_name, path)},
        "file_system_root": {"id": system, "directory": join("/", mount_name)},
        "file_system_id": system,
    }
