"""The few plans whose measurements would decide a choice."""

from __future__ import annotations

from collections.abc import Iterator
from math import erf, inf, log, sqrt
from typing import Final

from orchestration.planning.search.answers.plans import Plan, Plans, Range
from orchestration.planning.search.measured.corrections import DEVIATIONS, corrections

_LEAST: Final = 0.05
"""Probability of being better than the chosen plan below which a plan is not worth a job."""


def deciding(plans: Plans, most: int) -> list[Plan]:
    """Return the chosen plan and those that may well be better, without what was measured.

    The likelier ones come first, one of each instance type before a second of any; of a training
    of which nothing is known, one on each accelerator.
    """
    chosen = plans.chosen
    if chosen is None and plans.task.model.kind != "custom":
        return []
    known = {
        each.configuration
        for each in corrections(plans.task).known
        if each.measurement.step_time_s is not None or each.measurement.out_of_memory
    }
    ordered = _first(plans) if chosen is None else [chosen, *_likely(plans, chosen)]
    new = [plan for plan in ordered if plan.configuration not in known]
    kinds: set[str] = set()
    first: list[Plan] = []
    rest: list[Plan] = []
    for plan in new:
        kind = plan.instance_type if chosen else plan.configuration.machine.accelerator
        (rest if kind in kinds else first).append(plan)
        kinds.add(kind)
    return [*first, *rest][:most]


def _first(plans: Plans) -> list[Plan]:
    """Return plans of a training of which nothing is measured, the best by devices' rates first."""
    worst = Range(0.0, inf, inf)
    return sorted(
        plans.contenders,
        key=lambda p: ((_value(p, plans) or worst).expected, p.instance_count, p.instance_type),
    )


def _likely(plans: Plans, chosen: Plan) -> list[Plan]:
    """Return the plans that may well be better than the chosen one, the likelier first."""
    likely = [
        (chance, plan)
        for plan in _rivals(plans)
        if (chance := chance_of(plan, chosen, plans)) >= _LEAST
    ]
    likely.sort(key=lambda each: (-each[0], each[1].instance_type, each[1].instance_count))
    return [plan for _, plan in likely]


def _rivals(plans: Plans) -> Iterator[Plan]:
    seen = {plans.chosen.configuration} if plans.chosen is not None else set()
    for plan in (*plans.contenders, *plans.alternatives):
        if plan.configuration not in seen:
            seen.add(plan.configuration)
            yield plan


def chance_of(plan: Plan, chosen: Plan, plans: Plans) -> float:
    """Return the probability that a plan serves the objective better than the chosen one."""
    ours, theirs = _value(plan, plans), _value(chosen, plans)
    if ours is None or theirs is None:
        return 0.0
    spread = sqrt(_deviation(ours) ** 2 + _deviation(theirs) ** 2)
    distance = log(theirs.expected / ours.expected)
    return 0.5 * (1 + erf(distance / (spread * sqrt(2)))) if spread else float(distance > 0)


def _value(plan: Plan, plans: Plans) -> Range | None:
    return plan.cost_usd if plans.objective.aim == "cheapest" else plan.time_s


def _deviation(value: Range) -> float:
    return log(value.high / value.low) / (2 * DEVIATIONS)
