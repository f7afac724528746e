"""Assets that a pipeline's DAG runs after, and what their events tell.

The events of EventBridge get to Airflow by a queue of SQS, which the asset's watcher reads, or by
whatever else makes events of the asset. Another pipeline's success is an asset by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable

from orchestration.backends.airflow.triggers import RUN, message, values_of
from orchestration.graph import ParameterSpec, ScheduleSpec, TriggerSpec

if TYPE_CHECKING:
    from airflow.sdk import Context

    from orchestration.backends.airflow import DagSpec

_log = logging.getLogger(__name__)
_LOOKS_EVERY_S: Final = 20


def success_of(pipeline: str) -> Asset:
    """Return the asset that each successful run of a pipeline updates."""
    return Asset(f"{pipeline}.succeeded")


def schedule_of(spec: DagSpec, aws_conn_id: str | None, region_name: str | None) -> Any:
    """Return when the DAG runs by itself: at times, after events, or both."""
    times = None if spec.schedule is None else _times(spec.schedule)
    if spec.trigger is None:
        return times
    asset = _asset(spec, spec.trigger, aws_conn_id, region_name)
    return [asset] if times is None else AssetOrTimeSchedule(timetable=times, assets=[asset])


def catching_up(schedule: ScheduleSpec | None) -> dict[str, Any]:
    """Return whether a DAG runs what it has missed; Airflow then wants to know since when."""
    if schedule is None or schedule.start is None or not schedule.catchup:
        return {"catchup": False}
    return {"catchup": True, "start_date": datetime.fromisoformat(schedule.start)}


def _times(schedule: ScheduleSpec) -> Any:
    if schedule.cron is not None and schedule.is_plain_cron:
        return CronTriggerTimetable(schedule.cron, timezone=schedule.timezone)
    from orchestration.airflow.dags.timetable import FireTimes

    return FireTimes.of(schedule)


def _asset(
    spec: DagSpec, trigger: TriggerSpec, aws_conn_id: str | None, region_name: str | None
) -> Asset:
    if trigger.pipeline is not None:
        return success_of(trigger.pipeline)
    name = f"{spec.dag_id}.trigger"
    if trigger.queue is None:
        return Asset(name)
    # Only a DAG with a queue pays for this import while it is parsed.
    from airflow.providers.amazon.aws.triggers.sqs import SqsSensorTrigger

    reader = SqsSensorTrigger(
        sqs_queue=trigger.queue,
        aws_conn_id=aws_conn_id,
        region_name=region_name,
        # One event of the asset for each message: of several, a run would see one.
        max_messages=1,
        waiter_delay=_LOOKS_EVERY_S,
    )
    return Asset(name, watchers=[AssetWatcher(name=name, trigger=reader)])


def values_told(
    trigger: TriggerSpec, parameters: Sequence[ParameterSpec], context: Context
) -> dict[str, Any]:
    """Return what parameters get from the event that started the run, and the run's name.

    Airflow makes one run of all events that came while it could start none; the newest counts.
    """
    events = [
        event for each in context["triggering_asset_events"].values() for event in _listed(each)
    ]
    events.sort(key=lambda event: event.timestamp)
    if not events:
        return dict(trigger.parameters)
    for event in events[:-1]:
        _log.warning("this run is for a newer event; none is for %s", _event(event))
    event = _event(events[-1])
    dag_id = context["dag"].dag_id
    named = {RUN: f"{dag_id}/{event['id']}"} if isinstance(event.get("id"), str) else {}
    return {**trigger.parameters, **values_of(trigger, event, parameters), **named}


def _listed(events: Any) -> Sequence[Any]:
    return list(events)


def _event(event: Any) -> Mapping[str, Any]:
    """Return the event of EventBridge in an event of an asset; of a pipeline, one like it."""
    extra = event.extra or {}
    sent = message(extra)
    if sent is not None:
        return sent
    run = event.source_run_id
    return {
        **({} if run is None else {"id": f"{event.source_dag_id}/{run}"}),
        "time": event.timestamp.isoformat(),
        "detail": {"name": run},
        **extra,
    }
