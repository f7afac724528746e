"""Data repository tasks: imports from S3, exports to it, and how they are cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from orchestration.local.account.protocol import JsonObject, ServiceError, now
from orchestration.local.account.storage import Location
from orchestration.local.fsx.associations import Association
from orchestration.local.fsx.rules import refusal

EXPORT: Final = "EXPORT_TO_REPOSITORY"
IMPORT: Final = "IMPORT_METADATA_FROM_REPOSITORY"
RUNNING: Final = ("PENDING", "EXECUTING")
"""Lifecycles in which a task can be cancelled."""
UNFINISHED: Final = (*RUNNING, "CANCELING")


@dataclass
class Task:
    """One data repository task."""

    id: str
    arn: str
    request: JsonObject
    associations: Callable[[], list[Association]]
    """The associations that it works on."""
    created: datetime = field(default_factory=now)
    ended: datetime | None = None
    lifecycle: str = "PENDING"
    succeeded: int = 0
    failed: int = 0
    failure: str | None = None
    _changing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def system_id(self) -> str:
        """The file system."""
        return str(self.request["FileSystemId"])

    @property
    def type(self) -> str:
        """The kind of the task: `EXPORT_TO_REPOSITORY`."""
        return str(self.request["Type"])

    @property
    def association_id(self) -> str | None:
        """The association that started it, if one did."""
        return self.request.get("AssociationId")

    def work(self, fault: str | None) -> None:
        """Do the work, or fail for a reason."""
        try:
            if fault is not None:
                raise ServiceError("InternalServerError", fault)
            paths = self.request.get("Paths") or [None]
            for path in paths:
                if self.type == EXPORT:
                    self._export(path)
                else:
                    self._import(path)
        except (OSError, ServiceError) as error:
            self.failure = error.message if isinstance(error, ServiceError) else str(error)
        if self.failed:
            self.failure = f"{self.failed} files could not be processed"
        self.end("SUCCEEDED" if self.failure is None else "FAILED")

    def begin(self) -> bool:
        """Begin to execute; return False where it has been cancelled."""
        with self._changing:
            pending = self.lifecycle == "PENDING"
            if pending:
                self.lifecycle = "EXECUTING"
            return pending

    def cancel(self) -> None:
        """Begin to cancel; raise the service's error where it has ended."""
        with self._changing:
            if self.lifecycle not in RUNNING:
                raise refusal("tasks to cancel run", task=self.id)
            self.lifecycle = "CANCELING"

    def end(self, lifecycle: str) -> None:
        """End the task; one that is being cancelled ends as `CANCELED` alone."""
        with self._changing:
            if self.lifecycle != "CANCELING" or lifecycle == "CANCELED":
                # Last, so that a poll that sees the lifecycle sees its time, too.
                self.ended, self.lifecycle = now(), lifecycle

    def description(self) -> JsonObject:
        """Return the task as in a Describe response."""
        description: JsonObject = {
            "TaskId": self.id,
            "ResourceARN": self.arn,
            "FileSystemId": self.system_id,
            "Type": self.type,
            "Paths": self.request.get("Paths", []),
            "Report": self.request.get("Report"),
            "Tags": self.request.get("Tags"),
            "Lifecycle": self.lifecycle,
            "CreationTime": self.created,
            "StartTime": None if self.lifecycle == "PENDING" else self.created,
            "EndTime": self.ended,
            "Status": {
                "TotalCount": self.succeeded + self.failed,
                "SucceededCount": self.succeeded,
                "FailedCount": self.failed,
            },
            "FailureDetails": {"Message": self.failure} if self.failure else None,
        }
        return {key: value for key, value in description.items() if value is not None}

    def _import(self, path: str | None) -> None:
        below = None if path is None else Location.parse(path)
        for association in self.associations():
            if below is None or below.bucket == association.prefix.bucket:
                succeeded, failed = association.import_objects(below)
                self.succeeded += succeeded
                self.failed += failed

    def _export(self, path: str | None) -> None:
        if path is not None and path.startswith("/"):
            # "The paths you provide need to be relative to the mount point of the file system",
            # and "if a path that you provide isn't valid, the task fails" (the service model).
            raise ServiceError("BadRequest", f"the path '{path}' is not relative")
        linked = [a for a in self.associations() if path is None or is_within(path, a.path)]
        if not linked:
            raise ServiceError("BadRequest", f"the path '{path}' is not linked to S3")
        for association in linked:
            if path is not None and not association.system.local_path(path).exists():
                raise ServiceError("BadRequest", f"the path '{path}' does not exist")
            succeeded, failed = association.export(path)
            self.succeeded += succeeded
            self.failed += failed


def is_within(path: str, root: str) -> bool:
    """Return whether a path is a directory, or below it.

    >>> is_within("data/out", "/data"), is_within("data2", "/data")
    (True, False)
    """
    parts, above = path.strip("/").split("/"), root.strip("/").split("/")
    return above == [""] or parts[: len(above)] == above
