"""The parameters of runs, and the times and events that start them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from orchestration.expressions import Json

_Scalar: TypeAlias = str | float | bool
ParameterValue: TypeAlias = _Scalar | Sequence[_Scalar | Mapping[str, _Scalar]]
"""The value of a parameter: a scalar, or a list of scalars, or of objects of scalars."""

Overlap: TypeAlias = Literal["allow", "queue", "skip", "stop_older"]
"""The policy for a run that starts while an older one is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSpec:
    """A parameter of a workflow."""

    name: str
    type: Literal["string", "number", "boolean", "array"] = "string"
    default: ParameterValue | None = None
    """``None``: required."""
    description: str = ""
    uri: bool = False
    """True if every run reads it as an S3 URI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """When a workflow runs by itself: by ``cron``, at a ``rate`` from ``start`` on, or once ``at``.

    Moments are written in UTC: ``2027-01-01T05:00Z``.
    """

    cron: str | None = None
    """Five fields: minute hour day-of-month month day-of-week."""
    rate: str | None = None
    """``6 hours``."""
    at: str | None = None
    timezone: str
    """IANA name: ``Europe/Berlin``."""
    start: str | None = None
    """The first moment at which it may fire."""
    end: str | None = None
    """The first moment at which it no longer fires."""
    flexible_window_minutes: int | None = None
    """The time within which EventBridge Scheduler chooses when to start a run."""
    catchup: bool = False
    """True if all times since ``start`` that were missed have their runs."""
    time_parameter: str | None = None
    """The parameter that holds the time for which a run is started: ``2027-01-01T05:00:00Z``."""
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    @property
    def told(self) -> frozenset[str]:
        """The parameters that scheduled runs have a value for."""
        own = set() if self.time_parameter is None else {self.time_parameter}
        return frozenset(self.parameters) | own

    @property
    def is_plain_cron(self) -> bool:
        """True if a timetable of Airflow's own can mean it; else it is given ours.

        Airflow's timetables for rates count from the moment at which they are asked, and where a
        DAG has a start, they run at once what was due before it came.
        """
        return self.cron is not None and self.start is None and self.end is None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSpec:
    """The events that a workflow runs after."""

    pattern: Mapping[str, Json]
    """As EventBridge takes it; empty for another pipeline's success."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Texts for parameters, with ``<detail.object.key>`` for a field of the event."""
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    """Values that are the same for every event."""
    pipeline: str | None = None
    """The pipeline whose success it is."""
    bucket: str | None = None
    """The bucket whose objects it is about."""
    prefix: str = ""
    """The beginning of their keys."""
    suffix: str = ""
    """The end of their keys."""
    queue: str | None = None
    """The URL of the queue of SQS in which Airflow finds the events."""


def overlap_of(asked: Overlap | None, *, starts_itself: bool) -> Overlap:
    """Return a policy, or the default where none is asked for.

    Runs that nobody starts must not pay side by side unseen; a person who starts a second run
    means it.
    """
    return asked or ("queue" if starts_itself else "allow")
