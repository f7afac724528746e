"""A schedule as a user writes it, with the names that EventBridge Scheduler has."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Final, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field

from orchestration.graph import ScheduleSpec
from orchestration.stages.values import Element, Model, Name, Scalar

MOMENT: Final = "2027-03-01T06:00"
_LONGEST_WINDOW: Final = 1440


def _moment(value: object) -> object:
    """Write a date or a time, which YAML may have read as one already, in one way."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"expected a time such as {MOMENT}, got {value!r}") from error
    if not isinstance(value, date):
        raise ValueError(f"expected a time such as {MOMENT}, got {value!r}")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.second or value.microsecond:
        raise ValueError(f"schedules have whole minutes, got {value.isoformat()}")
    return value.isoformat(timespec="minutes")


Moment: TypeAlias = Annotated[str, BeforeValidator(_moment)]
"""A time of a clock in the schedule's time zone, or one with an offset: ``2027-03-01T06:00``."""


class Schedule(Model):
    """When the pipeline runs by itself: ``cron``, ``rate`` or ``at``, the same on both backends."""

    cron: str | None = None
    """Five fields: minute, hour, day of month, month, day of week: ``0 6 * * MON``."""
    rate: str | None = None
    """The time from one run to the next: ``15 minutes``, ``6 hours``, ``1 day`` (24 hours). It
    counts from ``start``, which is the first run."""
    at: Moment | None = None
    """The time of the only run: ``2027-03-01T06:00``, in ``timezone`` unless it has an offset."""
    timezone: str = "UTC"
    """IANA name: ``Europe/Berlin``."""
    start: Moment | None = None
    """The first time at which it may run: ``2027-03-01T06:00``, in ``timezone`` unless it has an
    offset."""
    end: Moment | None = None
    """The first time at which it no longer runs, written like ``start``."""
    flexible_window_minutes: int | None = Field(default=None, ge=1, le=_LONGEST_WINDOW)
    """Minutes after each time within which EventBridge Scheduler chooses when to start the run.
    Airflow starts it at the beginning of this window."""
    catchup: bool = False
    """True: each time since ``start`` that was missed has its run, and not only the last. Airflow
    starts these by itself; on Step Functions the deployment of a new schedule does."""
    time_parameter: Name | None = None
    """The parameter, a string, that holds the time for which a run is started, in UTC:
    ``2027-03-01T06:00:00Z``. ``time_text`` writes it, or a time before it, as runs need it."""
    parameters: dict[Name, Scalar | list[Element]] = {}
    """Values of parameters for scheduled runs."""

    def spec(self) -> ScheduleSpec:
        """Return the schedule, as backends take it; its time zone must be known."""
        return ScheduleSpec(
            cron=self.cron,
            rate=self.rate,
            at=_universal(self.at, self.timezone),
            timezone=self.timezone,
            start=_universal(self.start, self.timezone),
            end=_universal(self.end, self.timezone),
            flexible_window_minutes=self.flexible_window_minutes,
            catchup=self.catchup,
            time_parameter=self.time_parameter,
            parameters=self.parameters,
        )


def in_zone(text: str, timezone: str) -> datetime:
    """Return a written moment in a time zone."""
    moment = datetime.fromisoformat(text)
    zone = ZoneInfo(timezone)
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)


def _universal(text: str | None, timezone: str) -> str | None:
    if text is None:
        return None
    return f"{in_zone(text, timezone).astimezone(UTC):%Y-%m-%dT%H:%MZ}"
