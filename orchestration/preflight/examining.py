"""The examination of an account for a pipeline: every check, all findings at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orchestration.deploy.account import Account, Clients, in_its_place
from orchestration.deploy.composing import runs_of
from orchestration.deploy.parameters import read
from orchestration.expressions import Json
from orchestration.preflight.checks import CHECKS
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, ordered
from orchestration.preflight.offline import with_values
from orchestration.preflight.reader import Reader
from orchestration.preflight.requests import requests

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.runs.airflow import Api


def examine(
    pipeline: Pipeline,
    session: Clients,
    parameters: Mapping[str, Json],
    *,
    role: str | None = None,
    connection: str | None = None,
    airflow: Api | None = None,
) -> tuple[Account, tuple[Finding, ...]]:
    """Compare a pipeline with an account, reading only; the findings, the worst first.

    ``session`` is a ``boto3.Session``, or anything else that makes clients; ``parameters`` are the
    values that runs will be started with, ``role`` is one of your own that runs the state machine,
    ``connection`` that of Airflow's tasks, which ``airflow`` knows, or else the Airflow installed
    here. A :class:`~orchestration.errors.DeployError` where AWS
    does not identify the account, or the session is in another place than the pipeline.
    """
    account = Account.of(session)
    in_its_place(pipeline, account)
    workflow = pipeline.lower()
    chosen = read(workflow.parameters, parameters)
    runs = tuple(runs_of(workflow, chosen, ()))
    every, missing = requests(workflow, runs)
    examination = Examination(
        pipeline=pipeline,
        workflow=workflow,
        account=account,
        reader=Reader(session),
        requests=every,
        runs=runs,
        role=role,
        connection=connection,
        airflow=airflow,
    )
    findings = [*_unknown(missing)]
    for values in runs:
        findings += with_values(pipeline, _scalars(values))
    for check in CHECKS:
        findings += check(examination)
    return account, ordered(findings)


def _scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "")}


def _unknown(missing: frozenset[str]) -> Iterator[Finding]:
    for name in sorted(missing):
        yield Finding(
            check="parameters",
            severity="not checked",
            where=f"parameters.{name}",
            what="has no value, so nothing that it names was looked at",
            why="it has no default",
            mend=f"give the value that runs will have: -p {name}=…",
        )
