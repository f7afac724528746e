"""Machines that are not available yet: the next cluster, and waiting.

Messages of quota refusals are as people have quoted them in public: "The account-level service
limit 'ml.p3.8xlarge for training job usage' is 2 Instances, with current utilization of 3 Instances
and a request delta of 1 Instances." The limit is called "... for spot training job usage", "... for
processing job usage" or "... for endpoint usage" for others, "Number of instances across all
processing jobs" for all types together; that "... across all training jobs" exists as well is
assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

from pydantic import Field

from orchestration.expressions import Tree
from orchestration.graph import CAPACITY_REASON, Alternative, ErrorPattern, Fallback

LONGEST_WAIT_H: Final = 168
"""A week; what is not available then should be asked of AWS."""
Hours: TypeAlias = Annotated[float, Field(gt=0, le=LONGEST_WAIT_H)]
"""Hours to wait for capacity."""
PAUSE_S: Final = 900.0
"""Machines become free as the jobs of others end, which take minutes to hours; a quota does as your
own do."""
MOST_ROUNDS: Final = 48
"""Rounds after the first one. Each may take one of the 99 numbers that a job's name has room for,
and some are left for runs that are started again."""

_QUOTA: Final = "ResourceLimitExceeded"


def fallback(
    label: Tree, alternatives: Sequence[Alternative], usage: str, wait_h: float | None
) -> Fallback | None:
    """Return what follows a request for machines that are not available.

    ``usage`` are the last words of the quota's name: ``training job usage``. With neither
    alternatives nor hours to wait, nothing does.
    """
    if wait_h is None:
        if not alternatives:
            return None
        refusals = (ErrorPattern(_QUOTA, usage),)
        return Fallback(
            label=label,
            alternatives=tuple(alternatives),
            reasons=(CAPACITY_REASON,),
            refusals=refusals,
        )
    return Fallback(
        label=label,
        alternatives=tuple(alternatives),
        reasons=(CAPACITY_REASON,),
        # Of any quota that counts instances: that of a type, and that of all types together.
        refusals=(ErrorPattern(_QUOTA, "Instances, with current utilization"),),
        # It rises only where somebody asks AWS for more.
        futile=(ErrorPattern(_QUOTA, "is 0 Instances"),),
        wait_s=wait_h * 3600,
        pause_s=max(PAUSE_S, wait_h * 3600 / MOST_ROUNDS),
    )
