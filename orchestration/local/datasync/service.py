"""The operations of a simulated DataSync, for transfers between S3 and FSx for Lustre."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, Service, ServiceError
from orchestration.local.datasync import lustre, objects, tasks
from orchestration.local.datasync.locations import Location
from orchestration.local.datasync.lustre import LustreLocation
from orchestration.local.datasync.objects import S3Location
from orchestration.local.datasync.rules import REFUSED, refusal
from orchestration.local.datasync.tasks import Execution, Task
from orchestration.local.fsx.file_system import FileSystem


class _Tagged(Protocol):
    arn: str
    tags: dict[str, str]


class DataSync(Service):
    """The locations, tasks and executions of an account."""

    name = "datasync"
    malformed = REFUSED

    def __init__(self, account: Account, file_system: Callable[[str], FileSystem]) -> None:
        self._account = account
        self._file_system = file_system
        self._locations: dict[str, Location] = {}
        self._tasks: dict[str, Task] = {}
        self._lock = threading.RLock()
        operations: dict[str, Operation] = {
            "CreateLocationS3": self._create_location_in_s3,
            "DescribeLocationS3": lambda r: self._described(r, "S3"),
            "CreateLocationFsxLustre": self._create_location_on_lustre,
            "DescribeLocationFsxLustre": lambda r: self._described(r, "FsxLustre"),
            "DeleteLocation": self._delete_location,
            "ListLocations": self._list_locations,
            "CreateTask": self._create_task,
            "DescribeTask": lambda r: self._task(r["TaskArn"]).description(),
            "DeleteTask": self._delete_task,
            "ListTasks": self._list_tasks,
            "StartTaskExecution": self._start,
            "DescribeTaskExecution": lambda r: self._execution(r).description(),
            "CancelTaskExecution": self._cancel,
            "ListTaskExecutions": self._list_executions,
            "TagResource": self._tag,
            "ListTagsForResource": self._list_tags,
        }
        super().__init__(operations)

    def state(self) -> JsonObject:
        """Return locations, tasks and executions as in Describe responses."""
        return {
            "Locations": [each.description() for each in list(self._locations.values())],
            "Tasks": [each.description() for each in list(self._tasks.values())],
            "TaskExecutions": [
                execution.description()
                for task in list(self._tasks.values())
                for execution in task.executions
            ],
        }

    def _create_location_in_s3(self, request: JsonObject) -> JsonObject:
        objects.check(request)
        return self._added(S3Location(self._location_arn(), request, _tags(request)))

    def _create_location_on_lustre(self, request: JsonObject) -> JsonObject:
        system = lustre.check(request, self._account.networks, self._file_system)
        arn = self._location_arn()
        return self._added(LustreLocation(arn, request, _tags(request), system))

    def _location_arn(self) -> str:
        return self._account.arn("datasync", f"location/loc-{secrets.token_hex(8)}0")

    def _added(self, location: Location) -> JsonObject:
        self._locations[location.arn] = location
        return {"LocationArn": location.arn}

    def _described(self, request: JsonObject, kind: str) -> JsonObject:
        location = self._location(request["LocationArn"])
        if location.kind != kind:
            raise refusal("locations exist", location=location.arn)
        return location.description()

    def _location(self, arn: str) -> Location:
        if arn not in self._locations:
            raise refusal("locations exist", location=arn)
        return self._locations[arn]

    def _delete_location(self, request: JsonObject) -> JsonObject:
        with self._lock:
            location = self._location(request["LocationArn"])
            for task in list(self._tasks.values()):
                if location in (task.source, task.target):
                    raise refusal("locations in use stay", location=location.arn, task=task.arn)
            del self._locations[location.arn]
        return {}

    def _list_locations(self, request: JsonObject) -> JsonObject:
        wanted = _wanted(request, "LocationUri")
        return {
            "Locations": [
                {"LocationArn": each.arn, "LocationUri": each.uri}
                for each in list(self._locations.values())
                if wanted is None or each.uri in wanted
            ]
        }

    def _create_task(self, request: JsonObject) -> JsonObject:
        with self._lock:
            source = self._end(request["SourceLocationArn"])
            target = self._end(request["DestinationLocationArn"])
            existing = list(self._tasks.values())
            tasks.check(request, source, target, existing, self._account.region)
            arn = self._account.arn("datasync", f"task/task-{secrets.token_hex(8)}0")
            self._tasks[arn] = Task(arn, request, source, target, _tags(request))
        return {"TaskArn": arn}

    def _end(self, arn: str) -> Location:
        if arn not in self._locations:
            raise refusal("locations of a task exist", location=arn)
        return self._locations[arn]

    def _task(self, arn: str) -> Task:
        if arn not in self._tasks:
            raise refusal("tasks exist", task=arn)
        return self._tasks[arn]

    def _delete_task(self, request: JsonObject) -> JsonObject:
        with self._lock:
            task = self._task(request["TaskArn"])
            if task.running is not None:
                raise refusal("running tasks stay", task=task.arn)
            del self._tasks[task.arn]
        return {}

    def _list_tasks(self, request: JsonObject) -> JsonObject:
        wanted = _wanted(request, "LocationId")
        return {
            "Tasks": [
                {"TaskArn": t.arn, "Status": t.status, "Name": t.name, "TaskMode": t.mode}
                for t in list(self._tasks.values())
                if wanted is None or wanted & {t.source.arn, t.target.arn}
            ]
        }

    def _start(self, request: JsonObject) -> JsonObject:
        with self._lock:
            task = self._task(request["TaskArn"])
            arn = f"{task.arn}/execution/exec-{secrets.token_hex(8)}0"
            return {"TaskExecutionArn": task.start(self._account, arn, _tags(request)).arn}

    def _execution(self, request: JsonObject) -> Execution:
        arn = request["TaskExecutionArn"]
        task = self._tasks.get(arn.partition("/execution/")[0])
        for execution in () if task is None else task.executions:
            if execution.arn == arn:
                return execution
        raise refusal("executions exist", execution=arn)

    def _cancel(self, request: JsonObject) -> JsonObject:
        self._execution(request).cancel(self._account)
        return {}

    def _list_executions(self, request: JsonObject) -> JsonObject:
        return {
            "TaskExecutions": [
                {"TaskExecutionArn": e.arn, "Status": e.status, "TaskMode": e.task.mode}
                for e in self._task(request["TaskArn"]).executions
            ]
        }

    def _tagged(self, arn: str) -> _Tagged:
        everything: list[Sequence[_Tagged]] = [
            list(self._locations.values()),
            list(self._tasks.values()),
            *(task.executions for task in list(self._tasks.values())),
        ]
        for resource in (each for group in everything for each in group):
            if resource.arn == arn:
                return resource
        raise ServiceError(REFUSED, f"Resource {arn} is not found.")

    def _tag(self, request: JsonObject) -> JsonObject:
        self._tagged(request["ResourceArn"]).tags.update(_tags(request))
        return {}

    def _list_tags(self, request: JsonObject) -> JsonObject:
        tags = sorted(self._tagged(request["ResourceArn"]).tags.items())
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags]}


def _tags(request: JsonObject) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in request.get("Tags", [])}


def _wanted(request: JsonObject, name: str) -> set[str] | None:
    """Return the values that a listing is narrowed down to, None where it is not."""
    chosen = request.get("Filters")
    if not chosen:
        return None
    if [(each["Name"], each["Operator"]) for each in chosen] not in (
        [(name, "Equals")],
        [(name, "In")],
    ):
        raise ServiceError(REFUSED, f"the embedded AWS lists by one {name} only (Equals, In)")
    return set(chosen[0]["Values"])
