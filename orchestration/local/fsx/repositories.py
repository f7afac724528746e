"""The data repositories of Lustre file systems: associations with S3, and export tasks."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, ServiceError, now
from orchestration.local.account.storage import Location
from orchestration.local.fsx.associations import Association, Task
from orchestration.local.fsx.file_system import FileSystem

# Seconds of AWS until an association is available or gone, and until a task has run.
ASSOCIATION_S = 120.0
TASK_S = 60.0


class Repositories:
    """The associations and tasks of all file systems."""

    def __init__(self, account: Account, file_system: Callable[[str], FileSystem]) -> None:
        self._account = account
        self._file_system = file_system
        self._associations: dict[str, Association] = {}
        self._tasks: dict[str, Task] = {}
        self._by_token: dict[str, tuple[JsonObject, Any]] = {}

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            "CreateDataRepositoryAssociation": self._create,
            "DescribeDataRepositoryAssociations": self._describe,
            "DeleteDataRepositoryAssociation": self._delete,
            "CreateDataRepositoryTask": self._create_task,
            "DescribeDataRepositoryTasks": self._describe_tasks,
        }

    def state(self) -> JsonObject:
        """Return everything as in Describe responses."""
        return {
            "DataRepositoryAssociations": [each.description() for each in self._of(None)],
            "DataRepositoryTasks": [task.description() for task in self._tasks.values()],
        }

    def forget(self, file_system_id: str) -> None:
        """Remove the associations of a deleted file system."""
        for association in self._of(file_system_id):
            self._associations.pop(association.id, None)

    def tags_of(self, arn: str) -> dict[str, str] | None:
        """Return the tags of an association, or None if no association has the ARN."""
        return next((each.tags for each in self._of(None) if each.arn == arn), None)

    def _of(self, file_system_id: str | None) -> list[Association]:
        return [
            association
            for association in list(self._associations.values())
            if file_system_id in (None, association.system.id)
        ]

    def _once(self, request: JsonObject) -> Any:
        """Return what a request with the same token created before, or None."""
        token = request.get("ClientRequestToken")
        if token not in self._by_token:
            return None
        earlier, resource = self._by_token[token]
        if earlier != request:
            raise ServiceError(
                "IncompatibleParameterError",
                "The request was made with the same client token and other parameters.",
                Parameter="ClientRequestToken",
            )
        return resource

    def _create(self, request: JsonObject) -> JsonObject:
        existing = self._once(request)
        if existing is not None:
            return {"Association": existing.description()}
        association = self._new_association(request)
        self._remember(request, association)
        description = association.description()
        self._later(ASSOCIATION_S, lambda: self._associate(association))
        return {"Association": description}

    def _new_association(self, request: JsonObject) -> Association:
        system = self._file_system(request["FileSystemId"])
        if system.lifecycle != "AVAILABLE":
            raise ServiceError("BadRequest", f"file system {system.id} is {system.lifecycle}")
        if system.lustre["DeploymentType"] == "SCRATCH_1":
            raise ServiceError(
                "BadRequest", "Data repository associations are not supported on SCRATCH_1."
            )
        path = request.get("FileSystemPath", "/")
        if any(other.path.strip("/") == path.strip("/") for other in self._of(system.id)):
            raise ServiceError("BadRequest", f"an association with {path} already exists")
        if not storage.bucket_exists(Location.parse(request["DataRepositoryPath"]).bucket):
            raise ServiceError(
                "BadRequest", f"the bucket of {request['DataRepositoryPath']} does not exist"
            )
        identifier = f"dra-{secrets.token_hex(8) + '0'}"
        arn = self._account.arn("fsx", f"association/{system.id}/{identifier}")
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        association = Association(identifier, arn, request, system, tags=tags)
        self._associations[identifier] = association
        return association

    def _associate(self, association: Association) -> None:
        association.import_objects()
        association.lifecycle = "AVAILABLE"

    def _describe(self, request: JsonObject) -> JsonObject:
        identifiers = request.get("AssociationIds")
        if identifiers:
            return {"Associations": [self._get(each).description() for each in identifiers]}
        matching = [
            association
            for association in self._of(None)
            if all(_passes(association, filter_) for filter_ in request.get("Filters", []))
        ]
        return {"Associations": [association.description() for association in matching]}

    def _get(self, identifier: str) -> Association:
        if identifier not in self._associations:
            raise ServiceError(
                "DataRepositoryAssociationNotFound", f"'{identifier}' does not exist."
            )
        return self._associations[identifier]

    def _delete(self, request: JsonObject) -> JsonObject:
        association = self._get(request["AssociationId"])
        association.lifecycle = "DELETING"
        deletes = bool(request.get("DeleteDataInFileSystem", False))
        self._later(ASSOCIATION_S, lambda: self._vanish(association, deletes))
        return {
            "AssociationId": association.id,
            "Lifecycle": "DELETING",
            "DeleteDataInFileSystem": deletes,
        }

    def _vanish(self, association: Association, deletes: bool) -> None:
        self._associations.pop(association.id, None)
        if deletes:
            for path in storage.files(association.system.local_path(association.path)):
                path.unlink()

    def _create_task(self, request: JsonObject) -> JsonObject:
        existing = self._once(request)
        if existing is not None:
            return {"DataRepositoryTask": existing.description()}
        system = self._file_system(request["FileSystemId"])
        if request["Type"] != "EXPORT_TO_REPOSITORY":
            raise ServiceError(
                "BadRequest", f"the embedded AWS does not simulate {request['Type']}"
            )
        busy = [
            task
            for task in self._tasks.values()
            if task.request["FileSystemId"] == system.id
            and task.lifecycle in ("PENDING", "EXECUTING")
            and set(task.request.get("Paths", [])) & set(request.get("Paths", []) or [""])
        ]
        if busy:
            raise ServiceError(
                "DataRepositoryTaskExecuting",
                f"data repository task {busy[0].id} is already executing on {system.id}",
            )
        identifier = f"task-{secrets.token_hex(8) + '0'}"
        arn = self._account.arn("fsx", f"task/{system.id}/{identifier}")
        task = self._tasks[identifier] = Task(identifier, arn, request)
        self._remember(request, task)
        description = task.description()
        self._later(TASK_S, lambda: self._export(task))
        return {"DataRepositoryTask": description}

    def _export(self, task: Task) -> None:
        task.lifecycle = "EXECUTING"
        try:
            for association in self._of(task.request["FileSystemId"]):
                for path in task.request.get("Paths") or [None]:
                    if path is None or _is_within(path, association.path):
                        task.files += association.export(path)
        except (OSError, ServiceError) as error:
            task.failure, task.lifecycle = str(error), "FAILED"
        else:
            task.lifecycle = "SUCCEEDED"
        task.ended = now()

    def _describe_tasks(self, request: JsonObject) -> JsonObject:
        identifiers = request.get("TaskIds")
        if identifiers:
            missing = [each for each in identifiers if each not in self._tasks]
            if missing:
                raise ServiceError("DataRepositoryTaskNotFound", f"'{missing[0]}' does not exist.")
        return {
            "DataRepositoryTasks": [
                self._tasks[each].description() for each in identifiers or self._tasks
            ]
        }

    def _remember(self, request: JsonObject, resource: Any) -> None:
        if request.get("ClientRequestToken"):
            self._by_token[request["ClientRequestToken"]] = (request, resource)

    def _later(self, simulated_s: float, action: Callable[[], None]) -> None:
        timer = threading.Timer(self._account.clock.pause(simulated_s), action)
        timer.daemon = True
        timer.start()


def _passes(association: Association, condition: JsonObject) -> bool:
    value = {"file-system-id": association.system.id}.get(condition["Name"])
    return value is None or value in condition["Values"]


def _is_within(path: str, root: str) -> bool:
    parts, above = path.strip("/").split("/"), root.strip("/").split("/")
    return above == [""] or parts[: len(above)] == above
