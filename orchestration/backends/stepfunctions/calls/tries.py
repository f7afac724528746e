"""The tries of a job: one that an earlier attempt at the run left badly ended gets a successor.

A name that exists leads to the job under it. If that job has failed, and its number is lower than
that of the attempt, the next one is created, under the name with ``-2``, ``-3`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestration.backends.jsonata import enclosed, path, quote
from orchestration.backends.stepfunctions.names import TRY, variable
from orchestration.backends.stepfunctions.states import Rule
from orchestration.expressions import Json, Result, Tree, join
from orchestration.graph import CAPACITY_REASON, Adopt, Call, Operation
from orchestration.refs import Expression

_NOTHING: Final = enclosed("''")
"""Empty text; the public validators refuse it as a literal."""


def is_repeatable(step: Call) -> bool:
    """Return whether a further job can be created under a name of its own."""
    return step.until is not None and step.adopt is not None and step.adopt.name_field is not None


def waits(step: Call) -> bool:
    """Return whether a call sends its requests again where none found capacity."""
    return step.fallback is not None and step.fallback.waits


def suffixed(step: Call) -> Call:
    """Return a call whose requests name the job of the present try."""
    until, adopt = step.until, step.adopt
    if until is None or adopt is None or adopt.name_field is None:
        return step
    name = step.operation.request[adopt.name_field]
    if not isinstance(name, str | Expression):
        return step
    new = join(name, Result(step.name, TRY))
    created = {**step.operation.request, adopt.name_field: new}
    return replace(
        step,
        operation=replace(step.operation, request=created),
        until=replace(
            until,
            poll=_renamed(until.poll, name, new),
            stop=None if until.stop is None else _renamed(until.stop, name, new),
        ),
    )


def begun(step: Call) -> dict[str, Json]:
    """Return the assignments before the first try."""
    if not is_repeatable(step):
        return {}
    return {
        _number(step): 1,
        variable(step.name, TRY): _NOTHING,
        _again(step): False,
    }


def adopted(step: Call) -> dict[str, Json]:
    """Return the assignments where the job exists: an earlier attempt may have created it."""
    if not is_repeatable(step):
        return {}
    return {_again(step): enclosed(is_earlier(step))}


def successor(step: Call, failed: str, first: str) -> list[Rule]:
    """Return the rule for a job of an earlier attempt that ended badly.

    ``failed`` is the condition that a job did; ``first`` creates the next one.
    """
    if not is_repeatable(step):
        return []
    return [Rule(f"{failed} and ${_again(step)}", first, following(step))]


def again(step: Call, failed: str, root: str, first: str) -> list[Rule]:
    """Return the rule for a job that failed by itself and that the user wants tried again.

    ``failed`` is the condition that a job did, whose description is at ``root``.
    """
    adopt, until = step.adopt, step.until
    if adopt is None or until is None or adopt.tries == 1:
        return []
    capacity, by_itself = "capacity" in adopt.again, "job_failure" in adopt.again
    if until.reason is not None and capacity != by_itself:
        beginning = f"$substring({path(root, until.reason)}, 0, {len(CAPACITY_REASON)})"
        lacks = f"{beginning} = {quote(CAPACITY_REASON)}"
        failed = f"{failed} and {lacks if capacity else f'$not({lacks})'}"
    return [_next(step, adopt, failed, first)] if capacity or by_itself else []


def out_of_time(step: Call, limited: str, first: str) -> list[Rule]:
    """Return the rule for a job that ran out of its own time and that the user wants tried again.

    ``limited`` is the condition that a job did.
    """
    adopt = step.adopt
    if adopt is None or adopt.tries == 1 or "time_limit" not in adopt.again:
        return []
    return [_next(step, adopt, limited, first)]


def _next(step: Call, adopt: Adopt, failed: str, first: str) -> Rule:
    return Rule(f"{failed} and ${_number(step)} < {adopt.tries}", first, following(step))


def following(step: Call) -> dict[str, Json]:
    """Return the assignments that begin the next try."""
    return {
        _number(step): enclosed(f"${_number(step)} + 1"),
        variable(step.name, TRY): enclosed(f"'-' & (${_number(step)} + 1)"),
        _again(step): False,
    }


def is_earlier(step: Call) -> str:
    """Return the condition that the present try is one of earlier attempts.

    An attempt that waited for capacity may have made any number of tries.
    """
    if waits(step):
        return f"${searching(step)} and $attempt > 1"
    more = 0 if step.adopt is None else step.adopt.tries - 1
    return f"${_number(step)} < $attempt{f' + {more}' if more else ''}"


def searching(step: Call) -> str:
    """Return the variable that says whether jobs of earlier attempts are looked for."""
    return variable(step.name, "Searching")


def _number(step: Call) -> str:
    return variable(step.name, "Number")


def _again(step: Call) -> str:
    return variable(step.name, "Again")


def _renamed(operation: Operation, old: Tree, new: Tree) -> Operation:
    request = {key: _replaced(value, old, new) for key, value in operation.request.items()}
    return replace(operation, request=request)


def _replaced(tree: Tree, old: Tree, new: Tree) -> Tree:
    if isinstance(tree, Mapping):
        return {key: _replaced(item, old, new) for key, item in tree.items()}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [_replaced(item, old, new) for item in tree]
    return new if tree == old else tree
