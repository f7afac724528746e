"""Tasks and their executions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.datasync import filters
from orchestration.local.datasync.locations import Location
from orchestration.local.datasync.rules import refusal
from orchestration.local.datasync.transfers import Transfer

ENDED: Final = ("SUCCESS", "ERROR")
# Seconds of AWS; nobody could verify how long each takes there.
LAUNCHING_S: Final = 60.0
PREPARING_S: Final = 60.0
VERIFYING_S: Final = 30.0
OBJECTS_PER_S: Final = 1000.0


@dataclass
class Execution:
    """One execution of a task."""

    arn: str
    task: Task
    transfer: Transfer
    tags: dict[str, str]
    status: str = "QUEUED"
    error: tuple[str, str] | None = None
    started: datetime = field(default_factory=now)
    ended: datetime | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def begin(self, account: Account) -> None:
        """Run in a thread of its own."""
        self.status = "LAUNCHING"
        threading.Thread(target=self._perform, args=(account,), daemon=True).start()

    def cancel(self, account: Account) -> None:
        """Ask for the end."""
        with self.task.changing:
            if self.status in ENDED:
                raise refusal("executions to cancel run", execution=self.arn)
            queued = self.status == "QUEUED"
            self.status = "CANCELLING"
            self._cancelled.set()
        if queued:
            self._end(account)

    def description(self) -> JsonObject:
        """Return the execution as in a Describe response."""
        described = {
            "TaskExecutionArn": self.arn,
            "Status": self.status,
            "TaskMode": self.task.mode,
            "Options": self.task.options,
            "Includes": self.task.request.get("Includes"),
            "Excludes": self.task.request.get("Excludes"),
            "StartTime": self.started,
            "EndTime": self.ended,
            **self.transfer.counts.description(self.task.mode),
            "Result": None if self.error is None else self._result(self.error),
        }
        return {key: value for key, value in described.items() if value is not None}

    def _result(self, error: tuple[str, str]) -> JsonObject:
        code, detail = error
        return {"ErrorCode": code, "ErrorDetail": detail}

    def _perform(self, account: Account) -> None:
        fault = account.faults.job_fault("StartTaskExecution", self.task.name, self.task.request)
        try:
            self._phases(account, 0.0 if fault is None else fault.delay_s)
            if fault is not None:
                self.error = ("UnknownError", fault.message)
        except Exception as error:
            self.error = ("UnknownError", f"{type(error).__name__}: {error}")
            raise
        finally:
            self._end(account)

    def _phases(self, account: Account, delay_s: float) -> None:
        transfer = self.transfer
        if self._paused(account, LAUNCHING_S, "PREPARING"):
            return
        transfer.prepare()
        if self._paused(account, PREPARING_S, "TRANSFERRING"):
            return
        transfer.copy(self._cancelled.is_set)
        pause_s = delay_s + transfer.counts.transferred / OBJECTS_PER_S
        if self._paused(account, pause_s, "VERIFYING"):
            return
        if self.task.options.get("VerifyMode") != "NONE":
            transfer.verify()
        self._paused(account, VERIFYING_S, "VERIFYING")

    def _paused(self, account: Account, seconds: float, following: str) -> bool:
        """Let some seconds of AWS pass before a status; return whether it was cancelled."""
        self._cancelled.wait(account.clock.pause(seconds))
        with self.task.changing:
            if not self._cancelled.is_set():
                self.status = following
        return self._cancelled.is_set()

    def _end(self, account: Account) -> None:
        failed = self.transfer.counts.failed
        if self.error is None and any(failed.values()):
            self.error = ("TransferFailed", f"{sum(failed.values())} objects failed")
        with self.task.changing:
            good = self.error is None and not self._cancelled.is_set()
            self.ended, self.status = now(), "SUCCESS" if good else "ERROR"
        self.task.follow(account)


@dataclass
class Task:
    """One task."""

    arn: str
    request: JsonObject
    source: Location
    target: Location
    tags: dict[str, str]
    executions: list[Execution] = field(default_factory=list)
    created: datetime = field(default_factory=now)
    changing: threading.Lock = field(default_factory=threading.Lock)
    """Held while the status of an execution changes."""

    @property
    def name(self) -> str:
        """The name, which need not be unique."""
        return str(self.request.get("Name", ""))

    @property
    def mode(self) -> str:
        """The task mode."""
        return str(self.request.get("TaskMode", "BASIC"))

    @property
    def options(self) -> JsonObject:
        """The options, with the defaults that matter here."""
        verify = "ONLY_FILES_TRANSFERRED" if self.mode == "ENHANCED" else "POINT_IN_TIME_CONSISTENT"
        defaults = {"VerifyMode": verify, "TransferMode": "CHANGED", "TaskQueueing": "ENABLED"}
        return {**defaults, **self.request.get("Options", {})}

    @property
    def running(self) -> Execution | None:
        """The execution that is under way."""
        return next((e for e in self.executions if e.status not in (*ENDED, "QUEUED")), None)

    @property
    def status(self) -> str:
        """The status of the task."""
        return "AVAILABLE" if self.running is None else "RUNNING"

    def start(self, account: Account, arn: str, tags: dict[str, str]) -> Execution:
        """Start an execution, or put it into the queue."""
        with self.changing:
            running = self.running
            if running is not None and self.options["TaskQueueing"] == "DISABLED":
                raise refusal("one execution at a time", task=self.arn, execution=running.arn)
            execution = Execution(arn, self, self._transfer(), tags)
            self.executions.append(execution)
            if running is None:
                execution.begin(account)
        return execution

    def follow(self, account: Account) -> None:
        """Begin the next execution in the queue."""
        with self.changing:
            waiting = (e for e in self.executions if e.status == "QUEUED")
            following = next(waiting, None)
            if following is not None and self.running is None:
                following.begin(account)

    def description(self) -> JsonObject:
        """Return the task as in a Describe response."""
        described = {
            "TaskArn": self.arn,
            "Status": self.status,
            "Name": self.name,
            "TaskMode": self.mode,
            "SourceLocationArn": self.source.arn,
            "DestinationLocationArn": self.target.arn,
            "CurrentTaskExecutionArn": self.executions[-1].arn if self.executions else None,
            "Options": self.options,
            "Includes": self.request.get("Includes"),
            "Excludes": self.request.get("Excludes"),
            "CreationTime": self.created,
        }
        return {key: value for key, value in described.items() if value is not None}

    def _transfer(self) -> Transfer:
        return Transfer(
            self.source,
            self.target,
            self.options,
            self.mode,
            includes=filters.patterns(self.request.get("Includes")),
            excludes=filters.patterns(self.request.get("Excludes")),
        )


def check(
    request: JsonObject, source: Location, target: Location, tasks: Sequence[Task], region: str
) -> None:
    """Raise the service's error if a request for a task breaks a rule; `region` is the task's."""
    if region not in (source.region, target.region):
        raise refusal("one location is here", source=source.uri, target=target.uri, region=region)
    if len(tasks) >= 100:
        raise refusal("100 tasks")
    if request.keys() & {"Schedule", "ManifestConfig", "TaskReportConfig"}:
        raise refusal("schedules are not simulated")
    for pattern in filters.misplaced_wildcards(filters.patterns(request.get("Includes"))):
        raise refusal("include patterns end with the wildcard", pattern=pattern)
    options, mode = request.get("Options", {}), request.get("TaskMode", "BASIC")
    _check_mode(options, mode)
    if options.get("PreserveDeletedFiles") == "REMOVE" and options.get("TransferMode") == "ALL":
        raise refusal("no deletion without a comparison")
    kinds = {source.kind, target.kind}
    if kinds != {"S3"}:
        if mode == "ENHANCED":
            raise refusal("Enhanced mode is for S3")
        return
    for option in ("Uid", "Gid", "PosixPermissions"):
        if options.get(option, "NONE") != "NONE":
            raise refusal("objects have no owner", option=option, value=options[option])


def _check_mode(options: JsonObject, mode: str) -> None:
    atime, mtime = options.get("Atime", "BEST_EFFORT"), options.get("Mtime", "PRESERVE")
    if mode == "ENHANCED":
        if options.get("VerifyMode") == "POINT_IN_TIME_CONSISTENT":
            raise refusal("Enhanced mode verifies what it transfers")
        if mtime == "NONE":
            raise refusal("Enhanced mode keeps times")
    elif (atime == "NONE") != (mtime == "NONE"):
        raise refusal("Basic mode keeps both times or none", atime=atime, mtime=mtime)
