"""The time of a stage: a clock before its steps, and calls that are over within the time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestration.errors import Problem
from orchestration.expressions import Result
from orchestration.graph import Call, Clock, Graph, Within, upstream, with_calls
from orchestration.stages import Fragment, Stage

_NO_WAIT: Final = "this stage waits for nothing that could take longer than planned; remove it"


def timed(stage: Stage, fragment: Fragment) -> tuple[Fragment, list[Problem]]:
    """Return a stage's fragment with its time, and what keeps the stage from having one.

    Clean-ups and what is saved before them have limits of their own: they come after a stage that
    ran out of its time, too.
    """
    if stage.timeout_s is None:
        return fragment, []
    clock = Clock(name=f"{stage.name}.clock")
    within = Within(since=Result(clock.name, "at"), seconds=stage.timeout_s)
    waiting: list[Call] = []

    def change(call: Call) -> Call:
        if call.until is None:
            return call
        waiting.append(call)
        return replace(call, within=within)

    steps = tuple(with_calls(step, change, cleanups=False) for step in fragment.steps)
    guard = fragment.guard
    if guard is not None:
        acquire = replace(change(guard.acquire), after=(*guard.acquire.after, clock.name))
        guard = replace(guard, acquire=acquire, clock=clock)
    else:
        before = upstream(Graph(steps))
        later = (s if before[s.name] else replace(s, after=(*s.after, clock.name)) for s in steps)
        steps = (clock, *later)
    if not waiting:
        return fragment, [Problem("timeout_s", _NO_WAIT, stage=stage.name)]
    return replace(fragment, steps=steps, guard=guard), []
