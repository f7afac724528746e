"""The limit on how long a job may run."""

from __future__ import annotations

from orchestration.local.account.clock import Clock
from orchestration.local.account.protocol import JsonObject
from orchestration.local.processes.working_time import WorkingTime
from orchestration.local.sagemaker.outcomes import JobStopped

_DEFAULT_S = 86_400


class RuntimeLimit:
    """A job's `MaxRuntimeInSeconds`, counted from now."""

    def __init__(self, request: JsonObject, clock: Clock) -> None:
        stopping = request.get("StoppingCondition", {})
        self._seconds = stopping.get("MaxRuntimeInSeconds", _DEFAULT_S)
        self._limit_s = clock.limit(self._seconds)
        self._time = WorkingTime()

    def check(self) -> None:
        """Raise `JobStopped` once the job has run for too long; call this often."""
        worked_s = self._time.elapsed_s()
        if worked_s > self._limit_s:
            raise JobStopped(
                "MaxRuntimeExceeded",
                f"MaxRuntimeExceeded: the job ran for longer than its MaxRuntimeInSeconds of "
                f"{self._seconds} s (it could run for {worked_s:.0f} s of the "
                f"{self._time.wall_s():.0f} s since it began)",
            )
