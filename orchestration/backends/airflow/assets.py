"""Assets: the data and models that stages write, as outlets of tasks; and the tasks' settings.

An asset has one name in every run. A URI that is known when the DAG is made is the name itself, so
that other DAGs can wait for it as for any URI. Another one, with the run's identity in it, is only
known in the run: such an asset is called ``pipeline.stage.output``, and its events hold the URI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestration.backends.airflow.draft import Draft
from orchestration.backends.airflow.options import OUTLETS
from orchestration.errors import Problem
from orchestration.expressions import Result, Tree, walk
from orchestration.graph import Workflow

# Airflow drops what follows a question mark or a hash, and a slash at the end.
_PLAIN_URI = re.compile(r"s3://[a-z0-9.-]+(/[\w.!*'()=+:-]+)*", re.ASCII)
_LONGEST_NAME = 1500
"""Characters that Airflow's database has for the name of an asset."""


def place_assets(workflow: Workflow, tasks: Sequence[Draft]) -> None:
    """Let the last task of each stage leave the assets that the stage writes."""
    stages: dict[str, list[Draft]] = {}
    owners: dict[str, Draft] = {}
    for task in tasks if workflow.written else ():
        stages.setdefault(task.stage, []).append(task)
        owners |= dict.fromkeys(task.produced, task)
    for name, uri in workflow.written.items():
        read = {node.step for node in walk(uri) if isinstance(node, Result)}
        before = [owners[step] for step in read if step in owners]
        writer = _writer(stages.get(name.partition(".")[0], ()), before)
        if writer is not None:
            writer.writes[_asset(f"{workflow.name}.{name}", uri)] = uri


def give_options(workflow: Workflow, tasks: Sequence[Draft]) -> Iterator[Problem]:
    """Give each task its stage's settings; of its outlets, the stage's last task alone."""
    for stage, options in workflow.airflow.items():
        own = [task for task in tasks if task.stage == stage]
        plain = {name: value for name, value in options.items() if name != OUTLETS}
        for task in own:
            task.options |= plain
        if OUTLETS not in options or not own:
            continue
        last = _writer(own, ())
        if last is None:
            yield Problem(
                f"{stage}.airflow.outlets",
                "no task of this stage runs once in every run; name them for a stage after it",
            )
        else:
            last.options[OUTLETS] = options[OUTLETS]


def _asset(name: str, uri: Tree) -> str:
    plain = isinstance(uri, str) and _PLAIN_URI.fullmatch(uri) and len(uri) <= _LONGEST_NAME
    return uri if isinstance(uri, str) and plain else name


def _writer(stage: Sequence[Draft], before: Sequence[Draft]) -> Draft | None:
    """Return the last task that every run of a stage goes through, after some other tasks."""
    return next(
        (
            task
            for task in reversed(stage)
            if task.kind == "steps"
            and task.loop is None
            and not (task.setup or task.optional or task.teardown_of)
            and all(owner is task or task.waits_for(owner) for owner in before)
        ),
        None,
    )
