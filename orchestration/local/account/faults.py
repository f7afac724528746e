"""Failures on demand: which call or job fails next."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

from orchestration.local.account.protocol import Request
from orchestration.local.account.records import Fault


class Faults:
    """The faults that are still to happen, used up in the order in which they were injected."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[Fault] = []

    def inject(self, fault: Fault) -> None:
        """Add a fault."""
        with self._lock:
            self._pending.append(fault)

    def for_call(self, request: Request) -> Fault | None:
        """The fault that this call meets, used up once, if any."""
        return self._take(
            lambda fault: fault.matches(request.service, request.operation, request.parameters)
        )

    def for_job(self, operation: str, name: str) -> str | None:
        """Why this job is to fail, if it is."""
        fault = self.job_fault(operation, name, {})
        return fault.message if fault else None

    def job_fault(self, operation: str, name: str, request: Mapping[str, Any]) -> Fault | None:
        """The fault that a job meets which a request asks for, used up once, if any."""
        return self._take(lambda fault: fault.matches_job(operation, name, request))

    def _take(self, wanted: Callable[[Fault], bool]) -> Fault | None:
        with self._lock:
            for index, fault in enumerate(self._pending):
                if wanted(fault):
                    left = dataclasses.replace(fault, times=fault.times - 1)
                    self._pending[index : index + 1] = [left] if left.times > 0 else []
                    return fault
        return None
