"""The identity of a run in the names and tags of what it creates, from what a user calls it."""

from __future__ import annotations

from orchestration.deploy.account import Clients
from orchestration.deploy.executions.rerunning import token_of
from orchestration.deploy.executions.runs import TOKEN, found, named
from orchestration.errors import StartError
from orchestration.expressions.evaluate import run_token
from orchestration.runs.asking import asking


def tokens_of(pipeline: str, run: str, session: Clients) -> frozenset[str]:
    """Return the tokens that a run may have, by the name that its user gave it.

    ``run`` is the ARN of an execution or its end, ``PIPELINE:NAME``, or its ``NAME``; the name that
    ``start`` was given; the id of a run on Airflow or from this machine, also as ``PIPELINE/RUN``;
    or the token.
    """
    if run.startswith(("arn:", f"{pipeline}:")):
        return frozenset({token_of(run, session)})
    if (token := _of_execution(pipeline, run, session)) is not None:
        return frozenset({token})
    # Runs on Airflow and direct ones have the pipeline in their identity, named executions not.
    names = {run_token(run), run_token(f"{pipeline}/{run}")}
    return frozenset(names | ({run} if TOKEN.fullmatch(run) else set()))


def error_of(pipeline: str, run: str, session: Clients) -> str:
    """Return the name of the error that has ended an execution; empty where none is known."""
    try:
        return found(pipeline, run, session).error
    except StartError:
        # It runs elsewhere, or whoever reads its logs may not ask Step Functions.
        return ""


def _of_execution(pipeline: str, name: str, session: Clients) -> str | None:
    """Return the token of the execution with this name, if there is one that may be looked at."""
    from botocore.exceptions import ClientError

    with asking(f"execution {name} of {pipeline}"):
        try:
            execution = named(pipeline, name, session)
        except ClientError as error:
            # Whoever runs the pipeline elsewhere need not be allowed to ask Step Functions.
            if error.response["Error"]["Code"] != "AccessDeniedException":
                raise
            return None
    return None if execution is None else execution.token
