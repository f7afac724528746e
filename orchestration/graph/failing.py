"""The ways in which a job fails that another one may follow."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

FailureKind: TypeAlias = Literal["job_failure", "capacity", "time_limit"]
"""``job_failure``: it ran, and failed by itself. ``capacity``: AWS had no machines for it.
``time_limit``: it ran for as long as it was allowed to, and AWS stopped it."""

USUAL_FAILURES: Final[frozenset[FailureKind]] = frozenset({"job_failure", "capacity"})
"""The failures after which another job may succeed that is just like it."""

ENDS_OF_JOBS: Final = ("JobFailed", "TimedOut")
"""The errors of a job that ran, which a call with ``may_fail`` gets over."""

CAPACITY_REASON: Final = "CapacityError"
"""The beginning of the reason of a SageMaker job that failed because no capacity was available."""
