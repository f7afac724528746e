"""Airflow's connection: it exists in the Airflow that is installed here, and its region agrees."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Severity

_SOURCES: Final = (
    "https://airflow.apache.org/docs/apache-airflow-providers-amazon/stable/connections/aws.html",
)
_WHERE: Final = "dag(aws_conn_id=…)"


def connections(examination: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the connection that the tasks of a DAG would use."""
    name = examination.connection
    if name is None:
        return
    if find_spec("airflow") is None:
        what = f"could not check connection {name}: Airflow is not installed here"
        yield _finding("not checked", what, "run the doctor where Airflow runs")
        return
    from airflow.models.connection import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        connection: Any = Connection.get_connection_from_secrets(name)
    except AirflowException as error:
        yield _finding("fails", f"Airflow has no connection {name}: {error}", "create it")
        return
    if connection.conn_type != "aws":
        what = f"connection {name} is of the type {connection.conn_type!r}"
        yield _finding("fails", what, "make it one of the type aws")
    region = connection.extra_dejson.get("region_name")
    if region not in (None, examination.account.region):
        what = f"connection {name} is for {region}, and runs are in {examination.account.region}"
        yield _finding("fails", what, "mend its region_name, or give dag(…) a region_name")


def _finding(severity: Severity, what: str, mend: str) -> Finding:
    return Finding(
        check="connections",
        severity=severity,
        where=_WHERE,
        what=what,
        why="every task calls AWS with its credentials, in its region",
        when="the first task of a run starts",
        mend=mend,
        sources=_SOURCES,
    )
