"""The hours that the steps of a graph take together: expected, and at most."""

from __future__ import annotations

from math import ceil
from typing import Final

from orchestration.graph import Call, Choose, Concluded, ForEach, Guarded, Parallel, candidates
from orchestration.graph.ordering import layered
from orchestration.graph.steps import Graph, Step, Wait
from orchestration.graph.walking import stage_of, upstream
from orchestration.pricing.knowing import Known, Times

JOBS: Final = frozenset(
    f"Create{kind}Job" for kind in ("Training", "Processing", "Transform", "HyperParameterTuning")
)
"""The operations that start SageMaker's jobs, which most of the time of a run is spent on."""
_HOUR_S: Final = 3600.0
_NOTHING = Times(0.0, 0.0)


def hours(graph: Graph, known: Known) -> Times:
    """Return the hours of a graph's longest chain of steps; what only asks takes none.

    Expected is the time of jobs; at most, the time that all waiting may take.
    """
    before = upstream(graph)
    steps = {step.name: step for step in graph.steps}
    ends: dict[str, Times] = {}
    for name in layered(before):
        start = _latest(*(ends[other] for other in before[name]))
        ends[name] = _sum(start, _own(steps[name], known))
    return _latest(*ends.values())


def _own(step: Step, known: Known) -> Times:
    match step:
        case Call():
            return _of_call(step, known)
        case Choose():
            return _latest(hours(step.then, known), hours(step.otherwise, known))
        case ForEach():
            return _of_loop(step, known)
        case Parallel():
            return _latest(*(hours(branch, known) for branch in step.branches))
        case Guarded():
            return _sum(hours(step.body, known), hours(step.cleanup, known))
        case Concluded():
            return _sum(hours(step.body, known), hours(step.conclusion, known))
        case Wait():
            seconds = known.number(step.seconds)
            return Times(None, None) if seconds is None else _both(seconds)
        case _:
            return _NOTHING


def _of_call(call: Call, known: Known) -> Times:
    busy = call.retry.busy_timeout_s if call.retry.busy else 0.0
    if call.until is None:
        return Times(0.0, busy / _HOUR_S)
    most = max(each.until.timeout_s for each in candidates(call) if each.until is not None)
    tries = 1 if call.adopt is None else call.adopt.tries
    waiting = 0.0 if call.fallback is None else call.fallback.wait_s
    bound = (most * tries + waiting + busy) / _HOUR_S
    if call.operation.name not in JOBS:
        return Times(0.0, bound)
    expected = known.assumptions.hours(stage_of(call.name))
    return Times(None if expected is None else expected.hours, bound)


def _of_loop(loop: ForEach, known: Known) -> Times:
    elements = known.elements(loop)
    count = known.count(loop)
    if elements is not None:
        count = Times(float(len(elements)), float(len(elements)))
    each = hours(loop.body, known)
    if each == _NOTHING:
        return each
    return (
        Times(
            None if count.expected is None else ceil(count.expected / loop.max_concurrency),
            None if count.most is None else ceil(count.most / loop.max_concurrency),
        )
        * each
    )


def _both(seconds: float) -> Times:
    return Times(seconds / _HOUR_S, seconds / _HOUR_S)


def _sum(one: Times, other: Times) -> Times:
    return Times(_plus(one.expected, other.expected), _plus(one.most, other.most))


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _latest(*ends: Times) -> Times:
    expected = [end.expected for end in ends]
    most = [end.most for end in ends]
    return Times(_longest(expected), _longest(most))


def _longest(values: list[float | None]) -> float | None:
    return None if None in values else max((v for v in values if v is not None), default=0.0)
