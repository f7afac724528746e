"""Shortfalls: what is missing if there is no plan, by how much, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, floor, log10
from typing import Final

from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.answers.besides import bytes_per_parameter
from orchestration.planning.search.answers.plans import Plan, Plans
from orchestration.planning.search.answers.rejections import rejected
from orchestration.planning.search.objective import CHEAPEST, FASTEST, Objective
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Lora, Task

Search = Callable[[Task, Space, Objective], Plans]

_MORE: Final = (1, 2, 4, 8, 16, 32, 64, 128)
_GB: Final = 1e9


def missing(answer: Plans, space: Space, search: Search) -> tuple[str, ...]:
    """Return sentences for people: the gap first, then ways to close it."""
    allowed = list(space.allowed())
    if not allowed:
        patterns = ", ".join(space.types)
        return (f"no instance type for training matches {patterns}; see `orchestrate catalog`",)
    reasons = {rejection.reason for rejection in answer.rejected}
    limits = {"deadline", "budget", "run time"} & reasons
    if limits:
        return tuple(_limited(answer, space, search))
    if "memory" in reasons:
        return tuple(_too_large(answer, space, search))
    if not any(space.counts_of(instance.name) for instance in allowed):
        text = "the counts and quotas leave no instance of any allowed type"
        return (text, *_others(answer, space, search))
    groups = sorted(rejected(answer), key=lambda group: group.reason == "unknown")
    return (
        *(f"{group.what}: {group.detail}" for group in groups[:_SHOWN]),
        *_others(answer, space, search),
    )


_SHOWN: Final = 5
"""Reasons to show; `Plans.rejected` has all."""


def _limited(answer: Plans, space: Space, search: Search) -> Iterator[str]:
    """Describe plans that exist, but are too slow or too expensive."""
    objective = answer.objective
    unbounded = replace(space, longest_run_s=float("inf"))
    explained = False
    if objective.deadline_s is not None or objective.budget_usd is None:
        fastest = _soonest(answer.task, unbounded, search)
        limit = min(objective.deadline_s or float("inf"), space.longest_run_s)
        name = "the deadline" if objective.deadline_s else "the longest run of a training job"
        if fastest is not None and fastest.time_s.high > limit:
            longest = fastest.time_s.high
            by_choice = objective.deadline_s is not None and longest <= space.longest_run_s
            explained = True
            yield (
                f"the fastest plan, {_named(fastest)}, may take {duration(longest)}: "
                f"{duration(longest - limit)} more than {name} of {duration(limit)}"
                + (f"; the least deadline_h is {_up(longest / 3600)}" if by_choice else "")
            )
    if objective.budget_usd is not None:
        cheapest = _least_expensive(answer.task, unbounded, search)
        if (
            cheapest is not None
            and cheapest.cost_usd is not None
            and cheapest.cost_usd.high > objective.budget_usd
        ):
            explained = True
            over = cheapest.cost_usd.high - objective.budget_usd
            yield (
                f"the cheapest plan, {_named(cheapest)}, may cost {money(cheapest.cost_usd.high)}: "
                f"{money(over)} more than the budget of {money(objective.budget_usd)}; "
                f"the least budget_usd is {_up(cheapest.cost_usd.high)}"
            )
    if not explained:
        yield from _clash(answer, space, search)
    yield from _others(answer, space, search, half=False)


def _soonest(task: Task, space: Space, search: Search) -> Plan | None:
    """Return the plan that takes least at the high end of its prediction."""
    known = search(task, space, FASTEST)
    while (best := known.chosen) is not None:
        found = search(task, space, replace(FASTEST, deadline_s=_BELOW * best.time_s.high))
        if found.chosen is None or found.space.unverified != known.space.unverified:
            break
        known = found
    return known.chosen


def _least_expensive(task: Task, space: Space, search: Search) -> Plan | None:
    """Return the plan that costs least at the high end of its prediction."""
    known = search(task, space, CHEAPEST)
    while (best := known.chosen) is not None and best.cost_usd is not None:
        found = search(task, space, replace(CHEAPEST, budget_usd=_BELOW * best.cost_usd.high))
        if found.chosen is None or found.space.unverified != known.space.unverified:
            break
        known = found
    return known.chosen


_BELOW: Final = 0.999
"""Share of a plan's high end that a better one keeps."""


def _up(value: float) -> str:
    """Format the next number of two digits.

    >>> _up(2.61), _up(653.2), _up(0.0123), _up(26)
    ('2.7', '660', '0.013', '26')
    """
    step = 10.0 ** (floor(log10(value)) - 1)
    return f"{ceil(round(value / step, 6)) * step:.10g}"


def _clash(answer: Plans, space: Space, search: Search) -> Iterator[str]:
    """Describe plans that keep one limit but not the other."""
    limits = answer.objective
    fast = search(answer.task, space, replace(limits, aim="fastest", deadline_s=None)).chosen
    if fast is not None:
        yield (
            f"the fastest plan within the budget, {_named(fast)}, may take "
            f"{duration(fast.time_s.high)}"
        )
    cheap = search(answer.task, space, replace(limits, aim="cheapest", budget_usd=None)).chosen
    if cheap is not None and cheap.cost_usd is not None:
        yield (
            f"the cheapest plan within the deadline, {_named(cheap)}, may cost "
            f"{money(cheap.cost_usd.high)}"
        )


def _too_large(answer: Plans, space: Space, search: Search) -> Iterator[str]:
    """Compare the model's state with the memory of the allowed instances."""
    task = answer.task
    state = state_gb(task)
    largest, count = max(
        (
            (instance, max(counts))
            for instance in space.allowed()
            if (counts := space.counts_of(instance.name))
        ),
        key=lambda cluster: (cluster[0].memory_gib or 0) * cluster[1],
    )
    held = (largest.memory_gib or 0) * count * 2**30 / _GB
    trained = str(task.lora) if task.lora else task.optimizer
    text = (
        f"{task.model.name}, {task.model.parameters / _GB:,.1f} billion parameters in "
        f"{task.precision} with {trained}, needs {state:,.0f} GB of state; the allowed "
        f"{count} x {largest.name} {'hold' if count > 1 else 'holds'} {held:,.0f} GB"
    )
    yield text + ("" if state > held else ", but not beside activations and gathered layers")
    more = search(task, replace(space, counts=_MORE, quotas={}), CHEAPEST).chosen
    if more is not None:
        yield f"allow more instances: {_described(more)}"
    yield from _others(answer, space, search)
    for lora in _smaller(task):
        adapted = replace(task, lora=lora)
        small = search(adapted, space, answer.objective).chosen
        if small is not None:
            gb = state_gb(adapted)
            yield f"or fine-tune with {lora}: {gb:,.0f} GB of state, {_described(small)}"
            return


def _smaller(task: Task) -> Iterator[Lora]:
    """Return adapters that need less memory than what was asked for, those of most bits first."""
    if task.model.kind == "custom":
        return
    if task.lora is None:
        yield Lora(rank=16)
    lora = task.lora or Lora(rank=16)
    torch = task.framework.name in ("pytorch", "huggingface")
    if lora.bits is None and torch and task.precision != "fp8":
        yield replace(lora, bits=4)


def _others(answer: Plans, space: Space, search: Search, *, half: bool = True) -> Iterator[str]:
    """Look for a plan with other strategies, in another precision, or in the rest of the catalog.

    The search in fp16 comes last, since it is no faster than bf16.
    """
    if space.strategies is not None:
        plan = search(answer.task, replace(space, strategies=None), answer.objective).chosen
        if plan is not None:
            yield f"allow other strategies: {_described(plan)}, started by {plan.strategy.kind}"
    if answer.task.precision == "fp8":
        plan = search(replace(answer.task, precision="bf16"), space, answer.objective).chosen
        if plan is not None:
            yield f"train in bf16: {_described(plan)}"
    everywhere = replace(space, types=("ml.*",), quotas={}, strategies=None)
    more = replace(everywhere, counts=_MORE)
    ways = {"allow other instances": everywhere, "allow more and other instances": more}
    if set(space.types) == {"ml.*"}:
        ways = {"allow other instances": more}
    found = (
        (way, search(answer.task, wide, answer.objective).chosen) for way, wide in ways.items()
    )
    way, plan = next(((way, plan) for way, plan in found if plan is not None), ("", None))
    if plan is not None:
        yield f"{way}: {_described(plan)}"
    elif half and answer.task.precision == "bf16":
        fp16 = replace(answer.task, precision="fp16")
        plan = search(fp16, space, answer.objective).chosen
        if plan is not None:
            yield f"train in fp16: {_described(plan)}"


def state_gb(task: Task) -> float:
    """Return the weights, gradients and optimizer states of one copy, in 10^9 bytes."""
    per_parameter = bytes_per_parameter(task)
    parameters = task.model.parameters
    trained = parameters if task.trainable is None else task.trainable
    saved = 0.0
    if task.lora is not None and task.lora.frozen_bits:
        packed = parameters - task.model.embedding_parameters
        saved = packed * (per_parameter.weight - task.lora.frozen_bits / 8)
    return (
        parameters * per_parameter.weight
        - saved
        + trained * (per_parameter.gradient + per_parameter.optimizer)
    ) / _GB


def _named(plan: Plan) -> str:
    return f"{plan.instance_count} x {plan.instance_type}"


def _described(plan: Plan) -> str:
    cost = "" if plan.cost_usd is None else f", {money(plan.cost_usd.expected)}"
    return f"{_named(plan)} ({plan.layout}) takes {duration(plan.time_s.expected)}{cost}"
