"""Runs that events of assets or a timetable start, as the scheduler makes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.models.asset import AssetEvent, DagScheduleAssetReference
from airflow.sdk import timezone
from airflow.utils.types import DagRunType
from sqlalchemy import select

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session


def start_at(run: DagRun, moment: datetime) -> None:
    """Make a run one that a timetable has started for a moment."""
    run.run_type = DagRunType.SCHEDULED
    run.logical_date = run.data_interval_start = run.data_interval_end = moment


def start_by(run: DagRun, extra: Mapping[str, Any], session: Session) -> None:
    """Make a run one that an event of its DAG's asset has started."""
    asset_id = session.scalar(
        select(DagScheduleAssetReference.asset_id).where(
            DagScheduleAssetReference.dag_id == run.dag_id
        )
    )
    event = AssetEvent(asset_id=asset_id, extra=dict(extra), timestamp=timezone.utcnow())
    session.add(event)
    run.run_type = DagRunType.ASSET_TRIGGERED
    run.consumed_asset_events.append(event)
