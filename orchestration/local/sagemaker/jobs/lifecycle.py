"""The life of a SageMaker job: a name, a status, a thread that runs it to its end."""

from __future__ import annotations

import datetime
import threading
from abc import ABC, abstractmethod

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError, now
from orchestration.local.account.records import Fault
from orchestration.local.iam.working import require
from orchestration.local.sagemaker.checks.surroundings import caller
from orchestration.local.sagemaker.outcomes import JobFailed, JobStopped

# SageMaker cuts FailureReason here.
_LONGEST_REASON = 1024


class Job(ABC):
    """A job; its subclass defines its work in `run`."""

    kind = ""
    arn_word = ""

    def __init__(self, account: Account, request: JsonObject, role: str | None = None) -> None:
        self.account = account
        self.request = request
        self.caller = caller(account, role or request["RoleArn"])
        self.name = str(request[f"{self.kind}JobName"])
        self.arn = account.arn("sagemaker", f"{self.arn_word}/{self.name.lower()}")
        self.directory = account.directory / self.arn_word / self.name
        self.created = now()
        self.modified = self.created
        self.started: datetime.datetime | None = None
        self.ended: datetime.datetime | None = None
        self.status = "InProgress"
        self.failure_reason: str | None = None
        self.stop_requested = threading.Event()
        self._ending = threading.Lock()
        self._fault: Fault | None = None
        self._activity = (f"Describe{self.kind}Job", self.name)
        self._thread = threading.Thread(target=self._run_to_the_end, daemon=True)

    @abstractmethod
    def run(self) -> None:
        """Do the work; raise `JobFailed` or `JobStopped` if it does not complete."""

    @abstractmethod
    def logs(self) -> str:
        """Return the job's log so far."""

    def recent_log(self) -> str:
        """Return the end of the job's log so far."""
        return self.logs()

    @abstractmethod
    def describe(self) -> JsonObject:
        """Return those members of its Describe response that not all jobs have."""

    def progress(self) -> JsonObject:
        """Return how far the job is, for people who wait for it."""
        lines = self.recent_log().splitlines()
        return {
            "phase": self.status,
            "metrics": {},
            "checkpoint": None,
            "line": next((line for line in reversed(lines) if line.strip()), ""),
        }

    def enter(self, secondary_status: str, message: str = "") -> None:
        """Enter a new phase."""
        self.modified = now()

    def start(self) -> None:
        """Start the job."""
        faults, operation = self.account.faults, f"Create{self.kind}Job"
        self._fault = faults.job_fault(operation, self.name, self.request)
        if self._fault is None:
            # Before anybody can ask for it: one that waits for its instances is not at work.
            self.account.activity.begin(self._activity)
        self._thread.start()

    def stop(self) -> None:
        """Ask the job to stop; a job that has ended stays as it is."""
        with self._ending:
            if self.status == "InProgress":
                self.status = "Stopping"
                self.enter("Stopping", f"Stopping the {self.kind.lower()} job")
                self.stop_requested.set()

    def _run_to_the_end(self) -> None:
        try:
            self._meet_injected_fault()
            require(self.caller.principal, self.request, self.account.region)
            self.run()
        except JobFailed as error:
            self._end("Failed", "Failed", str(error)[:_LONGEST_REASON])
        except JobStopped as error:
            self._end("Stopped", error.secondary_status, error.reason)
        except ServiceError as error:
            self._end("Failed", "Failed", f"ClientError: {error}"[:_LONGEST_REASON])
        except Exception as error:
            # A job must end even if the simulation has a bug.
            reason = f"InternalServerError: {type(error).__name__}: {error}"
            self._end("Failed", "Failed", reason[:_LONGEST_REASON])
        else:
            self._end("Completed", "Completed")

    def _meet_injected_fault(self) -> None:
        fault = self._fault
        if fault is None:
            return
        # As on AWS, a job that waits for its instances can be stopped.
        if self.stop_requested.wait(self.account.clock.pause(fault.delay_s)):
            raise JobStopped
        raise JobFailed(fault.message)

    def _end(self, status: str, secondary_status: str, reason: str | None = None) -> None:
        # A stop that is under way would go on with a job that has ended.
        with self._ending:
            self.ended = now()
            self.failure_reason = reason
            self.enter(secondary_status, reason or "")
            # Last, so that a poll that sees the status sees everything else too.
            self.status = status
        self.account.activity.end(self._activity)
