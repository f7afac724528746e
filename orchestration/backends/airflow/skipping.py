"""Tasks that Airflow shows as skipped where the condition of their stage does not hold.

Airflow skips whatever follows a skipped task. What follows one of these goes on, and is skipped
only if the place that both stand in never began: its rule asks for one success, and it waits for
the task that begins the place, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestration.backends.airflow.draft import Draft, stage_of
from orchestration.graph import Choose


def show(tasks: Sequence[Draft]) -> None:
    """Let the tasks that do nothing where a condition does not hold be skipped then."""
    readers: dict[Draft, list[Draft]] = {}
    for task in tasks:
        for before in task.upstream:
            readers.setdefault(before, []).append(task)
    for task in tasks:
        following = [reader for reader in readers.get(task, ()) if not _runs_anyway(reader)]
        if _only_sometimes(task) and all(_may_go_on(reader) for reader in following):
            task.skips = True
            _go_on(following)


def _go_on(readers: Iterable[Draft]) -> None:
    for reader in readers:
        reader.trigger_rule = "none_failed_min_one_success"
        if reader.begun_by is not None and reader.begun_by not in reader.upstream:
            reader.upstream.append(reader.begun_by)


def _only_sometimes(task: Draft) -> bool:
    """Return whether nothing is done in a task, or before it in its stage, but for a condition."""
    if task.begun_by is None or task.kind != "steps" or task.has_return:
        return False
    if task.collects is not None:
        return not task.steps and _skips_stage(task.collects)
    return len(task.steps) == 1 and _skips_stage(task.steps[0]) and task.gathers is None


def _skips_stage(step: object) -> bool:
    """Return whether a step is the choice whether its own stage runs."""
    if not isinstance(step, Choose) or step.otherwise.steps:
        return False
    return stage_of(step) in {stage_of(inner) for inner in step.then.steps}


def _may_go_on(reader: Draft) -> bool:
    # Airflow wants the rule all_success of whatever follows a setup.
    after_setup = any(before.setup for before in reader.upstream)
    return reader.begun_by is not None and reader.trigger_rule != "all_done" and not after_setup


def _runs_anyway(reader: Draft) -> bool:
    return reader.teardown_of is not None or reader.kind in ("outcome", "leftovers")
