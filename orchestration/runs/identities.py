"""The identity of a run in the names and tags of what it creates, from what a user calls it."""

from __future__ import annotations

import re
from typing import Final

from orchestration.deploy.account import Clients
from orchestration.deploy.executions.rerunning import token_of
from orchestration.expressions.evaluate import run_token

_TOKEN: Final = re.compile(r"[0-9a-f]{12}")


def tokens_of(pipeline: str, run: str, session: Clients) -> frozenset[str]:
    """Return the tokens that a run may have, by the name that its user gave it.

    ``run`` is the ARN of an execution or its end, ``PIPELINE:NAME``; the name that ``start`` was
    given; the id of a run on Airflow or from this machine, also as ``PIPELINE/RUN``; or the token.
    """
    if run.startswith(("arn:", f"{pipeline}:")):
        return frozenset({token_of(run, session)})
    # Runs on Airflow and direct ones have the pipeline in their identity, named executions not.
    names = {run_token(run), run_token(f"{pipeline}/{run}")}
    return frozenset(names | ({run} if _TOKEN.fullmatch(run) else set()))
