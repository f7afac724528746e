"""Airflow's connection: it exists in the Airflow that is installed here, and its region agrees."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule

_RULE: Final = Rule(
    check="connections",
    why="every task calls AWS with its credentials, in its region",
    sources=(
        "https://airflow.apache.org/docs/apache-airflow-providers-amazon/stable/connections/aws.html",
    ),
)
_WHERE: Final = "dag(aws_conn_id=…)"
_WHEN: Final = "the first task of a run starts"


def connections(examination: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the connection that the tasks of a DAG would use."""
    name = examination.connection
    if name is None:
        return
    if find_spec("airflow") is None:
        what = f"could not check connection {name}: Airflow is not installed here"
        mend = "run the doctor where Airflow runs"
        yield _RULE.broken(_WHEN, _WHERE, what, mend, "not checked")
        return
    from airflow.models.connection import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        connection: Any = Connection.get_connection_from_secrets(name)
    except AirflowException as error:
        yield _RULE.broken(_WHEN, _WHERE, f"Airflow has no connection {name}: {error}", "create it")
        return
    if connection.conn_type != "aws":
        what = f"connection {name} is of the type {connection.conn_type!r}"
        yield _RULE.broken(_WHEN, _WHERE, what, "make it one of the type aws")
    region = connection.extra_dejson.get("region_name")
    if region not in (None, examination.account.region):
        what = f"connection {name} is for {region}, and runs are in {examination.account.region}"
        yield _RULE.broken(
            _WHEN, _WHERE, what, "mend its region_name, or give dag(…) a region_name"
        )
