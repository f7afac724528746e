"""The choice among plans: the best, unless a plan with fewer doubts is as good as far as is known.

A price is a doubt if it is estimated, an accelerator if nothing of the task's kind was measured on
it, and offloading, unless the task itself was measured. All widen the intervals of a plan; where
another plan without that doubt lies within the interval, it is chosen, and among several one that
is easier to get.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from orchestration.catalog import Price, instances, is_scarce
from orchestration.planning.model.measurements import model_digest
from orchestration.planning.model.regimes import MEASURED, Kind, is_known, kind
from orchestration.planning.search.answers.plans import Plan
from orchestration.planning.search.objective import Objective
from orchestration.planning.search.task import Task

PRICE_FACTOR: Final = 1.1
"""Uncertainty of an estimated price: known prices are 1.15 to 1.25 times those of EC2, and regions
differ by as much."""


def kind_of(task: Task) -> Kind:
    """Return the kind of a training, for which there are measurements or not."""
    return kind(task.model, task.precision)


def is_measured(task: Task, accelerator: str) -> bool:
    """Return whether trainings of this kind were measured on an accelerator, or the task itself."""
    own = any(
        each.step_time_s is not None
        and _accelerator(each.instance_type) == accelerator
        and each.model == model_digest(task.model)
        for each in task.measurements
    )
    if task.model.kind == "custom":
        return own
    return own or accelerator in MEASURED[kind_of(task)]


def _accelerator(instance_type: str) -> str | None:
    known = instances().get(instance_type)
    return None if known is None else known.accelerator


def may_be_chosen(task: Task, plan: Plan) -> bool:
    """Return whether enough is known of a plan: of a model without a formula, a measurement."""
    measured = is_measured(task, plan.configuration.machine.accelerator)
    return measured or task.model.kind != "custom"


def extrapolates(task: Task, accelerator: str) -> bool:
    """Return whether an accelerator was measured, but only in trainings of another kind."""
    return is_known(accelerator) and accelerator not in MEASURED[kind_of(task)]


def doubts(task: Task, accelerator: str, price: Price | None) -> int:
    """Return how many things about a plan on an accelerator are not known."""
    return (not is_measured(task, accelerator)) + (price is None or price.estimate)


def doubts_of(task: Task, plan: Plan) -> int:
    """Return how many things about a plan are not known."""
    known = doubts(task, plan.configuration.machine.accelerator, plan.price)
    return known + _offloads_unmeasured(task, plan)


def is_timed(task: Task) -> bool:
    """Return whether a step of the task's model was timed, on any instances."""
    digest = model_digest(task.model)
    return any(each.step_time_s is not None and each.model == digest for each in task.measurements)


def _offloads_unmeasured(task: Task, plan: Plan) -> bool:
    """Return whether a plan offloads, whose predictions are the least sure."""
    return plan.configuration.offload != "none" and not is_timed(task)


def choose(
    plans: Sequence[Plan],
    task: Task,
    objective: Objective,
    rank: Callable[[Plan], tuple[object, ...]],
) -> tuple[Plan | None, Plan | None]:
    """Return the chosen plan, and the one with lower expectations that it was preferred to."""
    if task.model.kind == "custom":
        return _measured_best(plans, task, rank)
    best = min(plans, key=rank, default=None)
    if best is None:
        return None, None

    most = doubts_of(task, best)
    surer = [
        p
        for p in plans
        if doubts_of(task, p) < most
        and _is_as_good(p, best, objective)
        and (not _offloads_unmeasured(task, p) or _is_no_later(p, best, objective))
    ]
    if not surer:
        return best, None
    chosen = min(surer, key=lambda p: (doubts_of(task, p), is_scarce(p.instance_type), *rank(p)))
    return chosen, best


def _measured_best(
    plans: Sequence[Plan], task: Task, rank: Callable[[Plan], tuple[object, ...]]
) -> tuple[Plan | None, Plan | None]:
    """Return the best plan on accelerators that were measured, and a better one on others."""
    known = [plan for plan in plans if may_be_chosen(task, plan)]
    chosen, best = min(known, key=rank, default=None), min(plans, key=rank, default=None)
    return chosen, best if chosen is not None and best is not chosen else None


_LONGEST: Final = 2.0
"""Times that a surer plan may take as long, or cost as much, in what the objective leaves open."""


def _is_as_good(plan: Plan, best: Plan, objective: Objective) -> bool:
    """Return whether a plan lies within the interval of the best."""
    if plan.cost_usd is None or best.cost_usd is None:
        return objective.aim == "fastest" and plan.time_s.expected <= best.time_s.high
    pairs = [(plan.cost_usd, best.cost_usd), (plan.time_s, best.time_s)]
    (ours, theirs), (other, others) = pairs if objective.aim == "cheapest" else pairs[::-1]
    return ours.expected <= theirs.high and other.expected <= _LONGEST * others.expected


def _is_no_later(plan: Plan, best: Plan, objective: Objective) -> bool:
    """Return whether a plan is at most as slow, or expensive, as the best may be."""
    if objective.aim == "fastest" or plan.cost_usd is None or best.cost_usd is None:
        return plan.time_s.high <= best.time_s.high
    return plan.cost_usd.high <= best.cost_usd.high


def missing_facts(task: Task, plan: Plan, chosen: Plan | None) -> str:
    """Return what somebody could find out to make a plan as sure as the chosen one."""
    facts = []
    unknown = not is_measured(task, plan.configuration.machine.accelerator)
    if unknown or _offloads_alone(task, plan, chosen):
        facts.append("a measurement")
    if plan.price is not None and plan.price.estimate:
        facts.append("a listed price")
    return " and ".join(facts)


def _offloads_alone(task: Task, plan: Plan, chosen: Plan | None) -> bool:
    """Return whether a plan is less sure than the chosen one since it offloads."""
    shared = chosen is not None and _offloads_unmeasured(task, chosen)
    return _offloads_unmeasured(task, plan) and not shared


def why_doubtful(task: Task, plan: Plan, chosen: Plan | None) -> str:
    """Return what is not known about a plan beside the chosen one, as a clause."""
    reasons = []
    if plan.price is not None and plan.price.estimate:
        reasons.append("its price is an estimate")
    if not is_measured(task, plan.configuration.machine.accelerator):
        if task.model.kind == "custom":
            return " and ".join([*reasons, "the training was not measured on it"])
        name = {"dense": "dense training", "experts": "mixture of experts", "bits": "fp8 training"}
        reasons.append(f"no published {name[kind_of(task)]} was measured on it")
    if _offloads_alone(task, plan, chosen):
        reasons.append("what offloading takes is the least sure of all")
    return " and ".join(reasons)
