"""Jobs: each reads its manifest, copies what it lists, and reports."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError, now
from orchestration.local.account.rules import broken
from orchestration.local.batch import manifests, reports
from orchestration.local.batch.copying import Outcome, copied
from orchestration.local.batch.manifests import Line
from orchestration.local.batch.rules import FAILURES, RULES

ENDED: Final = ("Complete", "Cancelled", "Failed")
# Seconds of AWS; nobody could verify how long each takes there.
_PREPARING_S: Final = 60.0
_STARTING_S: Final = 30.0
_OBJECTS_PER_S: Final = 500.0
_JUDGED: Final = 1000
"""Tasks after which a job fails if more than half of them have failed."""


@dataclass
class Job:
    """One job."""

    id: str
    arn: str
    request: JsonObject
    tags: dict[str, str]
    status: str = "New"
    failures: list[JsonObject] = field(default_factory=list)
    total: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    created: datetime = field(default_factory=now)
    terminated: datetime | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, account: Account) -> None:
        """Run in a thread of its own."""
        threading.Thread(target=self._perform, args=(account,), daemon=True).start()

    def cancel(self, requested: str) -> None:
        """Ask for the end; a job that waits for no confirmation can do nothing else."""
        with self._lock:
            if self.status in ENDED or requested != "Cancelled":
                raise broken(
                    RULES,
                    "ended jobs stay as they are",
                    job=self.id,
                    status=self.status,
                    requested=requested,
                )
            self.status = "Cancelling"
            self._cancelled.set()

    def summary(self) -> JsonObject:
        """Return the job as in a listing."""
        described = {
            "JobId": self.id,
            "Description": self.request.get("Description"),
            "Operation": next(iter(self.request["Operation"])),
            "Priority": self.request["Priority"],
            "Status": self.status,
            "CreationTime": self.created,
            "TerminationDate": self.terminated,
            "ProgressSummary": self._progress(),
        }
        return {key: value for key, value in described.items() if value is not None}

    def description(self) -> JsonObject:
        """Return the job as in a Describe response."""
        asked = ("Manifest", "Operation", "Report", "RoleArn", "ConfirmationRequired")
        return {
            **self.summary(),
            "JobArn": self.arn,
            **{name: self.request[name] for name in asked if name in self.request},
            **({"FailureReasons": self.failures} if self.failures else {}),
        }

    def _progress(self) -> JsonObject:
        failed = sum(bool(each.code) for each in self.outcomes)
        return {
            "TotalNumberOfTasks": self.total,
            "NumberOfTasksSucceeded": len(self.outcomes) - failed,
            "NumberOfTasksFailed": failed,
        }

    def _perform(self, account: Account) -> None:
        name = str(self.request.get("Description", ""))
        fault = account.faults.job_fault("CreateJob", name, self.request)
        ended = "Failed"
        try:
            self._run(account, 0.0 if fault is None else fault.delay_s)
            if fault is not None and not self._cancelled.is_set():
                raise ServiceError(fault.error_code, fault.message)
            ended = "Complete"
        except ServiceError as error:
            self.failures.append(manifests.failure(error))
        finally:
            with self._lock:
                self.terminated = now()
                self.status = "Cancelled" if self._cancelled.is_set() else ended

    def _run(self, account: Account, delay_s: float) -> None:
        if self._paused(account, 1.0, "Preparing"):
            return
        lines = manifests.read(self.request)
        self.total = len(lines)
        if self._paused(account, _PREPARING_S, "Ready"):
            return
        if self._paused(account, _STARTING_S, "Active"):
            return
        try:
            self._copy(lines)
            self._paused(account, delay_s + len(self.outcomes) / _OBJECTS_PER_S, "Completing")
        finally:
            reports.write(self.id, self.request["Report"], self.outcomes, self.request["RoleArn"])

    def _copy(self, lines: Sequence[Line]) -> None:
        operation = self.request["Operation"]["S3PutObjectCopy"]
        for line in lines:
            if self._cancelled.is_set():
                return
            self.outcomes.append(copied(line, operation, self.request["RoleArn"]))
            failed = sum(bool(each.code) for each in self.outcomes)
            if len(self.outcomes) >= _JUDGED and failed > len(self.outcomes) / 2:
                raise broken(FAILURES, "half of the tasks succeed")

    def _paused(self, account: Account, seconds: float, following: str) -> bool:
        """Let some seconds of AWS pass before a status; return whether it was cancelled."""
        if self._cancelled.wait(account.clock.pause(seconds)):
            return True
        with self._lock:
            if not self._cancelled.is_set():
                self.status = following
        return self._cancelled.is_set()
