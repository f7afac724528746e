"""Back-fills of a DAG: the runs that its schedule would have started, made by Airflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestration.expressions import Json
from orchestration.runs.airflow.api import Api


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A back-fill that is asked for; times whose run is there, however it ended, are left out."""

    dag: str
    first: datetime
    last: datetime
    """The last time that is meant."""
    at_most: int
    values: Mapping[str, Json]
    """Values of parameters, for all its runs."""

    def body(self) -> dict[str, Json]:
        """Return it as Airflow is asked for it."""
        return {
            "dag_id": self.dag,
            "from_date": self.first.astimezone(UTC).isoformat(),
            "to_date": self.last.astimezone(UTC).isoformat(),
            "max_active_runs": self.at_most,
            "dag_run_conf": dict(self.values),
            "reprocess_behavior": "none",
        }


def missing(api: Api, wanted: Wanted) -> tuple[datetime, ...]:
    """Return the times of which Airflow would make runs; it makes none yet."""
    found = api.post("backfills", "dry_run", body=wanted.body())["backfills"]
    return tuple(datetime.fromisoformat(each["logical_date"]) for each in found)


def create(api: Api, wanted: Wanted) -> int:
    """Make the runs, which Airflow starts as many at a time as may be; the back-fill's number."""
    return int(api.post("backfills", body=wanted.body())["id"])


def is_paused(api: Api, dag: str) -> bool:
    """Return whether a DAG is paused, so that its runs wait."""
    return bool(api.get("dags", dag)["is_paused"])
