"""The stages that stand inside each guard: between what it acquires and what it releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline.placing.lowered import Lowered


def inside_guards(stages: Lowered) -> dict[str, frozenset[str]]:
    """The stages inside each guard, those inside a further guard in there included."""
    guards = sorted(
        (name for name, fragment in stages.fragments.items() if fragment.guard is not None),
        # What may be stopped by less lives around what may be stopped by more.
        key=lambda name: len(stages.gates[name]) + len(stages.conditions[name]),
    )
    if unused := [guard for guard in guards if not stages.readers[guard]]:
        raise PipelineError([_unused(guard) for guard in unused])
    if wrong := [
        problem
        for guard in guards
        for problem in (*_unsaved(guard, stages), *_for_nobody(guard, stages))
    ]:
        raise PipelineError(wrong)
    inside = {guard: stages.between(guard, stages.readers[guard]) for guard in guards}
    while (grown := _grown(inside, stages)) != inside:
        inside = grown
    for guard, members in inside.items():
        _check_runs_whenever(guard, members, stages)
    return inside


def _unused(guard: str) -> Problem:
    message = "creates a file system that no stage reads, only to delete it again"
    remedy = f"give a channel {{kind: fsx_lustre, file_system: {{ref: {guard}.file_system}}}}"
    return Problem("", f"{message}; {remedy}, or leave the stage out", stage=guard)


def _unsaved(guard: str, stages: Lowered) -> Iterator[Problem]:
    """Yield the guard that saves what perhaps nobody has written."""
    fragment, own = stages.fragments[guard], frozenset(stages.gates[guard])
    if fragment.guard is None or not fragment.guard.saving.steps:
        return
    stopped = [frozenset(stages.gates[name]) - own for name in stages.readers[guard]]
    if gates := frozenset[str]().union(*stopped) if all(stopped) else frozenset():
        names = ", ".join(sorted(gates))
        message = f"{names} may stop every stage that reads it, and then there is nothing to save"
        yield Problem("", f"{message}; add after: [{names}]", stage=guard)


def _for_nobody(guard: str, stages: Lowered) -> Iterator[Problem]:
    """Yield the guard that would be paid for although a condition skips all that need it."""
    own = frozenset(stages.conditions[guard])
    readers = stages.ordered(stages.readers[guard])
    further = [frozenset(stages.conditions[name]) - own for name in readers]
    if frozenset.intersection(*further):
        message = "a condition may skip every stage that reads it, and it would be paid for nothing"
        yield Problem("when", f"{message}; give it the `when` of {readers[0]}", stage=guard)


def _grown(inside: Mapping[str, frozenset[str]], stages: Lowered) -> dict[str, frozenset[str]]:
    """The stages inside each guard, with those that the ones inside already bring along."""
    guards = list(inside)
    grown: dict[str, frozenset[str]] = {}
    for position, guard in enumerate(guards):
        members = set(inside[guard])
        for other in guards[position + 1 :]:
            theirs = inside[other] | {other}
            if members & theirs or stages.are_entangled(frozenset(members | {guard}), theirs):
                # Two things needed at once: the later one lives inside the earlier one.
                members |= theirs
        members |= _brought_by_branches(guard, inside[guard], stages)
        grown[guard] = stages.between(guard, members)
    return grown


def _brought_by_branches(guard: str, members: frozenset[str], stages: Lowered) -> set[str]:
    """The stages that come along with members that run in a branch inside the guard.

    What depends on such a member can only be in there too, and so can what it depends on and is in
    a branch itself.
    """
    own = frozenset(stages.gates[guard])
    brought: set[str] = set()
    for name in members:
        if own.issuperset(stages.gates[name]):
            continue
        brought |= {later for later, before in stages.before.items() if name in before}
        brought |= {n for n in stages.before[name] if not own.issuperset(stages.gates[n])}
    return brought


def _check_runs_whenever(guard: str, members: frozenset[str], stages: Lowered) -> None:
    """Refuse what would silently not run because the guard that it got into does not."""
    own, conditions = set(stages.gates[guard]), set(stages.conditions[guard])
    for name in sorted(members):
        if not conditions.issubset(stages.conditions[name]):
            message = (
                f"stands between stages that need what {guard!r} creates, and that one may be "
                f"skipped; give both the same `when`, or neither"
            )
            raise PipelineError([Problem("when", message, stage=name)])
        free = own.difference(stages.gates[name])
        if free and stages.fragments[name].guard is None:
            raise PipelineError(
                [
                    Problem(
                        "",
                        f"shares what {guard!r} creates with stages that {', '.join(sorted(free))} "
                        "may stop, and does not wait for it; add after: "
                        f"[{', '.join(sorted(free))}], or give it a file system of its own",
                        stage=name,
                    )
                ]
            )
