"""Data repositories of Lustre file systems: associations with S3, and tasks between the two."""

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

# Simulated seconds.
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
        """The operations by their names."""
        return {
            "CreateDataRepositoryAssociation": self._create,
            "DescribeDataRepositoryAssociations": self._describe,
            "DeleteDataRepositoryAssociation": self._delete,
            "CreateDataRepositoryTask": self._create_task,
            "DescribeDataRepositoryTasks": self._describe_tasks,
        }

    def state(self) -> JsonObject:
        """Everything as Describe tells it."""
        return {
            "DataRepositoryAssociations": [one.description() for one in self._of(None)],
            "DataRepositoryTasks": [task.description() for task in self._tasks.values()],
        }

    def forget(self, file_system_id: str) -> None:
        """A file system is gone, its associations with it."""
        for association in self._of(file_system_id):
            self._associations.pop(association.id, None)

    def tags_of(self, arn: str) -> dict[str, str] | None:
        """The tags of an association, or None where the ARN is of none."""
        return next((one.tags for one in self._of(None) if one.arn == arn), None)

    def _of(self, file_system_id: str | None) -> list[Association]:
        return [
            one
            for one in list(self._associations.values())
            if file_system_id in (None, one.system.id)
        ]

    def _once(self, request: JsonObject) -> Any:
        """What the same request, by its token, made before."""
        token = request.get("ClientRequestToken")
        if token not in self._by_token:
            return None
        known, made = self._by_token[token]
        if known != request:
            raise ServiceError(
                "IncompatibleParameterError",
                "The request was made with the same client token and other parameters.",
                Parameter="ClientRequestToken",
            )
        return made

    def _create(self, request: JsonObject) -> JsonObject:
        made = self._once(request)
        if made is None:
            made = self._new_association(request)
            self._remember(request, made)
            description = made.description()
            self._later(ASSOCIATION_S, lambda: self._associate(made))
            return {"Association": description}
        return {"Association": made.description()}

    def _new_association(self, request: JsonObject) -> Association:
        system = self._file_system(request["FileSystemId"])
        if system.lifecycle != "AVAILABLE":
            raise ServiceError("BadRequest", f"file system {system.id} is {system.lifecycle}")
        if system.lustre["DeploymentType"] == "SCRATCH_1":
            raise ServiceError(
                "BadRequest", "Data repository associations are not supported on SCRATCH_1."
            )
        path = request.get("FileSystemPath", "/")
        if any(one.path.strip("/") == path.strip("/") for one in self._of(system.id)):
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
        association.bring()
        association.lifecycle = "AVAILABLE"

    def _describe(self, request: JsonObject) -> JsonObject:
        wanted = request.get("AssociationIds")
        if wanted:
            return {"Associations": [self._get(one).description() for one in wanted]}
        chosen = [
            one
            for one in self._of(None)
            if all(_passes(one, filter_) for filter_ in request.get("Filters", []))
        ]
        return {"Associations": [one.description() for one in chosen]}

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
            for path in storage.files(association.system.local(association.path)):
                path.unlink()

    def _create_task(self, request: JsonObject) -> JsonObject:
        made = self._once(request)
        if made is not None:
            return {"DataRepositoryTask": made.description()}
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
        wanted = request.get("TaskIds")
        if wanted:
            missing = [one for one in wanted if one not in self._tasks]
            if missing:
                raise ServiceError("DataRepositoryTaskNotFound", f"'{missing[0]}' does not exist.")
        return {
            "DataRepositoryTasks": [self._tasks[one].description() for one in wanted or self._tasks]
        }

    def _remember(self, request: JsonObject, made: Any) -> None:
        if request.get("ClientRequestToken"):
            self._by_token[request["ClientRequestToken"]] = (request, made)

    def _later(self, simulated_s: float, action: Callable[[], None]) -> None:
        timer = threading.Timer(self._account.clock.pause(simulated_s), action)
        timer.daemon = True
        timer.start()


def _passes(association: Association, wanted: JsonObject) -> bool:
    value = {"file-system-id": association.system.id}.get(wanted["Name"])
    return value is None or value in wanted["Values"]


def _is_within(path: str, root: str) -> bool:
    parts, above = path.strip("/").split("/"), root.strip("/").split("/")
    return above == [""] or parts[: len(above)] == above
