"""Airflow's connection: it exists, is of the type that tasks want, and its region agrees.

It is looked up by Airflow's REST API, or in the Airflow that is installed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any, Final

from orchestration.errors import StartError
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.runs.airflow import Api
from orchestration.runs.airflow.api import Refused

_RULE: Final = Rule(
    check="connections",
    why="every task calls AWS with its credentials, in its region",
    sources=(
        "https://airflow.apache.org/docs/apache-airflow-providers-amazon/stable/connections/aws.html",
    ),
)
_WHERE: Final = "dag(aws_conn_id=…)"
_WHEN: Final = "the first task of a run starts"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connection:
    type: str
    region: str | None


class _Missing(Exception):
    """No connection of this name, as far as can be seen."""


def connections(examination: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the connection that the tasks of a DAG would use."""
    name, api = examination.connection, examination.airflow
    if name is None:
        return
    if api is None and find_spec("airflow") is None:
        what = f"could not check connection {name}: Airflow is not installed here"
        mend = "give the address of Airflow's API server (--url), or run the doctor where it runs"
        yield _RULE.broken(_WHEN, _WHERE, what, mend, "not checked")
        return
    try:
        connection = _installed(name) if api is None else _served(api, name)
    except _Missing as error:
        what = f"Airflow has no connection {name} ({error}): tasks use their worker's credentials"
        mend = "create it, or see that these credentials may do what the DAG does"
        yield _RULE.broken(_WHEN, _WHERE, what, mend, "may fail")
    except StartError as error:
        what, mend = f"could not check connection {name}: {error}", "see the error, and ask again"
        yield _RULE.broken(_WHEN, _WHERE, what, mend, "not checked")
    else:
        yield from _disagreeing(examination, name, connection)


def _disagreeing(examination: Examination, name: str, connection: _Connection) -> Iterator[Finding]:
    if connection.type != "aws":
        what = f"connection {name} is of the type {connection.type!r}"
        yield _RULE.broken(_WHEN, _WHERE, what, "make it one of the type aws", "may fail")
    # The region of a pipeline goes before that of the connection.
    own = connection.region if examination.pipeline.region is None else None
    if own not in (None, examination.account.region):
        what = f"connection {name} is for {own}, and runs are in {examination.account.region}"
        yield _RULE.broken(
            _WHEN, _WHERE, what, "mend its region_name, or give dag(…) a region_name"
        )


def _served(api: Api, name: str) -> _Connection:
    """Return a connection that Airflow's API server knows: one in its database."""
    try:
        found = api.get("connections", name)
    except Refused as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise _Missing(
                "in its database; a secrets backend, or the environment of its workers, is not "
                "looked into"
            ) from error
        raise
    extra = json.loads(found["extra"] or "{}")
    return _Connection(type=found["conn_type"], region=extra.get("region_name"))


def _installed(name: str) -> _Connection:
    """Return a connection that the Airflow that is installed here knows."""
    from airflow.models.connection import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        found: Any = Connection.get_connection_from_secrets(name)
    except AirflowException as error:
        raise _Missing(str(error)) from error
    return _Connection(type=found.conn_type, region=found.extra_dejson.get("region_name"))
