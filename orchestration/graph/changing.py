"""Changes of the calls in a step, however deep they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestration.graph.steps import (
    Call,
    Choose,
    Concluded,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Step,
)


def with_calls(step: Step, change: Callable[[Call], Call], *, cleanups: bool = True) -> Step:
    """Replace every call of a step by what ``change`` makes of it.

    ``cleanups``: those of clean-ups too.
    """

    def graph(old: Graph) -> Graph:
        return Graph(tuple(with_calls(inner, change, cleanups=cleanups) for inner in old.steps))

    match step:
        case Call():
            return change(step)
        case Choose():
            return replace(step, then=graph(step.then), otherwise=graph(step.otherwise))
        case ForEach():
            return replace(step, body=graph(step.body))
        case Parallel():
            return replace(step, branches=tuple(graph(branch) for branch in step.branches))
        case Guarded():
            acquire, body = change(step.acquire), graph(step.body)
            cleanup = graph(step.cleanup) if cleanups else step.cleanup
            return replace(step, acquire=acquire, body=body, cleanup=cleanup)
        case Concluded():
            return replace(step, body=graph(step.body), conclusion=graph(step.conclusion))
        case _:
            return step
