"""Falling back on other machines never pays twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestration.errors import Problem
from orchestration.expressions import Join, Tree
from orchestration.graph import Call, Fallback, Workflow, all_steps, candidates


def fallbacks(workflow: Workflow) -> Iterator[Problem]:
    """A call with alternatives can be recognised and followed under each of its names."""
    for step in all_steps(workflow.graph):
        if isinstance(step, Call) and step.fallback is not None:
            for message in _of(step, step.fallback):
                yield Problem("", message, step=step.name)


def _of(step: Call, fallback: Fallback) -> Iterator[str]:
    if not fallback.alternatives and not fallback.waits:
        yield "falls back on nothing; give an alternative, wait_s, or no fallback"
    if fallback.waits and fallback.pause_s < 1:
        yield f"pauses {fallback.pause_s:g} s between two rounds; the least is 1"
    if not fallback.reasons and not fallback.refusals:
        yield "falls back, and nothing says when: give the fallback reasons or refusals"
    if "" in fallback.reasons:
        yield "an empty reason takes every failure for a lack of capacity"
    if fallback.reasons and (step.until is None or step.until.reason is None):
        yield "falls back for a job's reason, and until.reason does not say where it stands"
    if step.until is None:
        yield "falls back from nothing that it waits for; give it until"
    elif not step.until.absent:
        yield "falls back, and until.absent does not say how the poll tells that a job is missing"
    if step.adopt is None or step.adopt.name_field is None:
        yield "falls back without adopt.name_field: what an earlier attempt started is not found"
    else:
        yield from _names(step, step.adopt.name_field)


def _names(step: Call, field: str) -> Iterator[str]:
    own, named = step.operation, dict[str, int]()
    for number, candidate in enumerate(candidates(step)):
        operation = candidate.operation
        if (operation.service, operation.name) != (own.service, own.name):
            theirs = f"{operation.service}:{operation.name}"
            yield f"alternative {number} is {theirs}; it must be {own.service}:{own.name} too"
        if field not in operation.request:
            yield f"alternative {number} has no {field}"
            continue
        name = _text(operation.request[field])
        if name in named:
            yield f"alternative {number} has the {field} of another; each needs a name of its own"
        named.setdefault(name, number)
    for name, number in named.items():
        for other, second in named.items():
            # A task that a person clears starts anew under the name with -2, -3, ... behind it.
            if re.fullmatch(rf"{re.escape(name)}-\d+", other):
                yield (
                    f"alternative {second} has the {field} of number {number} and a number; that "
                    "is what a second try would be called, so let it end in a letter"
                )


def _text(tree: Tree) -> str:
    """A tree as text in which equal expressions are equal."""
    parts = tree.parts if isinstance(tree, Join) else (tree,)
    return "".join(part if isinstance(part, str) else f"\0{part!r}\0" for part in parts)
