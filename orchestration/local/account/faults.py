"""Injected failures: which call or job fails next."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

from orchestration.local.account.protocol import Request
from orchestration.local.account.records import DAMAGE, LATE, Fault


class Faults:
    """The pending faults, used in the order in which they were injected."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[Fault] = []

    def inject(self, fault: Fault) -> None:
        """Add a fault."""
        with self._lock:
            self._pending.append(fault)

    def clear(self) -> None:
        """Forget all that are pending."""
        with self._lock:
            self._pending.clear()

    def for_call(self, request: Request) -> Fault | None:
        """Return the fault for this call, if there is one, and use it once."""
        return self._take(
            lambda fault: fault.matches(request.service, request.operation, request.parameters)
        )

    def for_job(self, operation: str, name: str) -> str | None:
        """Return the reason for which this job must fail, or None."""
        fault = self.job_fault(operation, name, {})
        return fault.message if fault else None

    def job_fault(self, operation: str, name: str, request: Mapping[str, Any]) -> Fault | None:
        """Return the fault for the job that a request creates, if there is one, and use it once."""
        return self._take(lambda fault: fault.matches_job(operation, name, request))

    def damages(self, key: str) -> bool:
        """Return whether a copy to a key must differ from its source, once for each fault."""
        return (
            self._take(lambda each: each.operation == DAMAGE and each.containing in key) is not None
        )

    def hides(self, execution_arn: str) -> bool:
        """Return whether a list must leave an execution out, once for each fault."""
        late = self._take(lambda each: each.operation == LATE and each.containing in execution_arn)
        return late is not None

    def _take(self, applies: Callable[[Fault], bool]) -> Fault | None:
        with self._lock:
            for index, fault in enumerate(self._pending):
                if applies(fault):
                    left = dataclasses.replace(fault, times=fault.times - 1)
                    self._pending[index : index + 1] = [left] if left.times > 0 else []
                    return fault
        return None
