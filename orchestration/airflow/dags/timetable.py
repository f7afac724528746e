"""A timetable with the moments at which EventBridge Scheduler fires.

Airflow's own timetables count a rate from the moment at which they are asked, and run at once what
was due before a DAG came. This one is registered by the package's plugin, so that Airflow can read
DAGs from its database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.timetables.base import DagRunInfo, DataInterval, Timetable
from pendulum import DateTime, instance

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction

    from orchestration.graph import ScheduleSpec

_LATE: Final = timedelta(hours=1)
"""The time after which EventBridge Scheduler no longer starts what it could not start: a DAG that
Airflow has not run yet is not late for longer."""


class FireTimes(Timetable):
    """The moments of a pipeline's schedule."""

    def __init__(self, schedule: Mapping[str, Any]) -> None:
        """Take the fields of a :class:`~orchestration.graph.ScheduleSpec`."""
        self._fields = {name: value for name, value in schedule.items() if value is not None}
        self.description = self.summary

    @classmethod
    def of(cls, schedule: ScheduleSpec) -> FireTimes:
        """Return the timetable of a schedule."""
        return cls(
            {**asdict(schedule), "parameters": None, "catchup": None, "time_parameter": None}
        )

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> FireTimes:
        """Return the timetable that was written down."""
        return cls(data)

    def serialize(self) -> dict[str, Any]:
        """Write the timetable down."""
        return dict(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FireTimes) and other._fields == self._fields

    def __hash__(self) -> int:
        return hash(tuple(self._fields.items()))

    @property
    def summary(self) -> str:
        """The words that Airflow shows."""
        kind = next(name for name in ("cron", "rate", "at") if name in self._fields)
        return f"{kind}: {self._fields[kind]}"

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Return the interval of a run that a person starts: that moment."""
        return DataInterval.exact(run_after)

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """Return the next run; without catch-up, the last one that is due stands for all."""
        before = last_automated_data_interval
        earliest = restriction.earliest
        found = self._next(None if before is None else before.end, restriction.catchup, earliest)
        if found is None or (restriction.latest is not None and found > restriction.latest):
            return None
        return DagRunInfo.exact(found)

    def _next(
        self, before: datetime | None, catchup: bool, earliest: datetime | None
    ) -> DateTime | None:
        # Only who asks for a time pays for these.
        from orchestration.pipeline.schedules.firing import fires, last

        schedule, current = self._schedule(), datetime.now(tz=UTC)
        least = datetime.min.replace(tzinfo=UTC) if catchup else current - _LATE
        if before is not None:
            least = _plain(before)
        elif earliest is not None:
            least = max(least, _plain(earliest) - timedelta.resolution)
        if not catchup and (due := last(schedule, current)) is not None and due > least:
            return instance(due).in_timezone("UTC")
        found = next(fires(schedule, least), None)
        return None if found is None else instance(found).in_timezone("UTC")

    def _schedule(self) -> ScheduleSpec:
        from orchestration.graph import ScheduleSpec

        return ScheduleSpec(**self._fields)


def _plain(moment: datetime) -> datetime:
    """Return a moment of Airflow's as Python's own: pendulum divides by its own durations alone."""
    return datetime.fromisoformat(moment.isoformat())
