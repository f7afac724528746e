"""The data repositories of Lustre file systems: associations with S3, and tasks."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, ServiceError
from orchestration.local.fsx import linking
from orchestration.local.fsx.associations import Association
from orchestration.local.fsx.file_system import FileSystem
from orchestration.local.fsx.later import later
from orchestration.local.fsx.rules import refusal
from orchestration.local.fsx.tasks import EXPORT, IMPORT, UNFINISHED, Task
from orchestration.local.fsx.tokens import Tokens

# Seconds of AWS until an association is available or gone, until a task begins and has run, and
# until it is cancelled.
ASSOCIATION_S = 120.0
PENDING_S = 20.0
EXECUTING_S = 40.0
CANCELING_S = 20.0


class Repositories:
    """The associations and tasks of all file systems."""

    def __init__(self, account: Account, file_system: Callable[[str], FileSystem]) -> None:
        self._account = account
        self._file_system = file_system
        self._associations: dict[str, Association] = {}
        self._tasks: dict[str, Task] = {}
        self._created: Tokens[Association] = Tokens()
        self._started: Tokens[Task] = Tokens()

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            "CreateDataRepositoryAssociation": self._create,
            "DescribeDataRepositoryAssociations": self._describe,
            "DeleteDataRepositoryAssociation": self._delete,
            "CreateDataRepositoryTask": self._create_task,
            "DescribeDataRepositoryTasks": self._describe_tasks,
            "CancelDataRepositoryTask": self._cancel_task,
        }

    def state(self) -> JsonObject:
        """Return everything as in Describe responses."""
        return {
            "DataRepositoryAssociations": [each.description() for each in self._of(None)],
            "DataRepositoryTasks": [task.description() for task in list(self._tasks.values())],
        }

    def unfinished(self, file_system_id: str) -> Task | None:
        """Return a task of a file system that has not ended, if there is one."""
        tasks = list(self._tasks.values())
        running = (t for t in tasks if t.system_id == file_system_id and t.lifecycle in UNFINISHED)
        return next(running, None)

    def forget(self, file_system_id: str) -> None:
        """Remove the associations of a deleted file system."""
        for association in self._of(file_system_id):
            self._associations.pop(association.id, None)
            self._created.forget(association)

    def tags_of(self, arn: str) -> dict[str, str] | None:
        """Return the tags of an association, or None if no association has the ARN."""
        return next((each.tags for each in self._of(None) if each.arn == arn), None)

    def _of(self, file_system_id: str | None) -> list[Association]:
        return [
            association
            for association in list(self._associations.values())
            if file_system_id in (None, association.system.id)
        ]

    def _create(self, request: JsonObject) -> JsonObject:
        existing = self._created.known(request)
        if existing is not None:
            return {"Association": existing.description()}
        association = self._new_association(request)
        self._created.remember(request, association)
        description = association.description()
        later(self._account, ASSOCIATION_S, lambda: self._associate(association))
        return {"Association": description}

    def _new_association(self, request: JsonObject) -> Association:
        system = self._file_system(request["FileSystemId"])
        linking.check(request, system, self._of(system.id), self._account.region)
        identifier = f"dra-{secrets.token_hex(8) + '0'}"
        arn = self._account.arn("fsx", f"association/{system.id}/{identifier}")
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        association = Association(identifier, arn, request, system, tags=tags)
        self._associations[identifier] = association
        return association

    def _associate(self, association: Association) -> None:
        association.become_available()
        if association.request.get("BatchImportMetaDataOnCreate"):
            # Only now does the service begin to import: AVAILABLE says nothing of the files.
            system_id, own = association.system.id, association.id
            request = {"FileSystemId": system_id, "Type": IMPORT, "AssociationId": own}
            self._start(request, lambda: [association])

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
        later(self._account, ASSOCIATION_S, lambda: self._vanish(association, deletes))
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
        existing = self._started.known(request)
        if existing is not None:
            return {"DataRepositoryTask": existing.description()}
        self._check_task(request)
        task = self._start(request, lambda: self._of(request["FileSystemId"]))
        self._started.remember(request, task)
        return {"DataRepositoryTask": task.description()}

    def _check_task(self, request: JsonObject) -> None:
        system, kind, report = request["FileSystemId"], request["Type"], request["Report"]
        self._file_system(system)
        if kind not in (EXPORT, IMPORT):
            raise ServiceError("BadRequest", f"the embedded AWS does not simulate {kind}")
        if not self._of(system):
            raise refusal("tasks need a link", system=system)
        if kind == EXPORT and any(each.exports_automatically for each in self._of(system)):
            raise refusal("export tasks and auto export")
        if report["Enabled"] and not {"Path", "Format", "Scope"} <= report.keys():
            raise refusal("reports")
        running = self.unfinished(system)
        if running is not None and running.type == kind:
            raise refusal("one task at a time", task=running.id, system=system)

    def _start(self, request: JsonObject, linked: Callable[[], list[Association]]) -> Task:
        identifier = f"task-{secrets.token_hex(8) + '0'}"
        arn = self._account.arn("fsx", f"task/{request['FileSystemId']}/{identifier}")
        task = self._tasks[identifier] = Task(identifier, arn, request, linked)
        later(self._account, PENDING_S, lambda: self._execute(task))
        return task

    def _execute(self, task: Task) -> None:
        if task.begin():
            name = f"{task.type} {task.id}"
            fault = self._account.faults.job_fault("CreateDataRepositoryTask", name, task.request)
            seconds = EXECUTING_S + (0.0 if fault is None else fault.delay_s)
            reason = None if fault is None else fault.message
            later(self._account, seconds, lambda: self._work(task, reason))

    def _work(self, task: Task, fault: str | None) -> None:
        if task.lifecycle == "EXECUTING":
            task.work(fault)

    def _cancel_task(self, request: JsonObject) -> JsonObject:
        task = self._tasks.get(request["TaskId"])
        if task is None:
            raise refusal("tasks to cancel exist", task=request["TaskId"])
        task.cancel()
        later(self._account, CANCELING_S, lambda: task.end("CANCELED"))
        return {"TaskId": task.id, "Lifecycle": task.lifecycle}

    def _describe_tasks(self, request: JsonObject) -> JsonObject:
        identifiers = request.get("TaskIds")
        for each in identifiers or ():
            if each not in self._tasks:
                raise ServiceError("DataRepositoryTaskNotFound", f"'{each}' does not exist.")
        filters = request.get("Filters", [])
        for condition in filters:
            if condition["Name"] == "file-system-id":
                for system in condition["Values"]:
                    self._file_system(system)
        tasks = [self._tasks[each] for each in identifiers or list(self._tasks)]
        matching = [task for task in tasks if all(_fits(task, each) for each in filters)]
        return {"DataRepositoryTasks": [task.description() for task in matching]}


def _passes(association: Association, condition: JsonObject) -> bool:
    value = {"file-system-id": association.system.id}.get(condition["Name"])
    return value is None or value in condition["Values"]


def _fits(task: Task, condition: JsonObject) -> bool:
    values = {
        "file-system-id": task.system_id,
        "task-lifecycle": task.lifecycle,
        "data-repository-association-id": task.association_id,
    }
    return values.get(condition["Name"]) in condition["Values"]
