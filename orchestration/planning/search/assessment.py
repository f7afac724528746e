"""Assess a configuration: its time, memory and cost as a plan, and the limit that it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from orchestration.catalog import Instance, Price, accelerators
from orchestration.catalog.spot import Paid
from orchestration.planning.cost.data_parallel import host_rate
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.answers.besides import besides
from orchestration.planning.search.answers.learning_rates import advice
from orchestration.planning.search.answers.plans import Plan, Range, Reason
from orchestration.planning.search.measured.corrections import corrections
from orchestration.planning.search.objective import Objective
from orchestration.planning.search.places.place import Candidate
from orchestration.planning.search.preference import PRICE_FACTOR, extrapolates
from orchestration.planning.search.space import Space
from orchestration.planning.search.strategy_choice import StrategyChoice
from orchestration.planning.search.suitability import peak_tflops
from orchestration.planning.search.task import Task
from orchestration.strategies import NoStrategy, first_version


def plan_of(
    task: Task,
    space: Space,
    instance: Instance,
    count: int,
    candidate: Candidate,
    choice: StrategyChoice,
) -> Plan:
    """Return the plan of a configuration."""
    c = candidate.configuration
    corrected = corrections(task)
    prediction = corrected.predict(c)
    steps = task.steps(c.global_batch)
    step = Range(prediction.low_s, prediction.step_time_s, prediction.high_s)
    if not corrected.known and extrapolates(task, c.machine.accelerator):
        step = step.widened(step.high / step.expected)
    beside = besides(task, c.global_batch)
    time = step.times(steps).plus(beside.seconds)
    price = space.price(instance.name)
    peak = peak_tflops(accelerators()[c.machine.accelerator], c.precision) or 0.0
    return Plan(
        instance_type=instance.name,
        instance_count=count,
        layout=candidate.layout,
        strategy=choice.strategy or NoStrategy(),
        configuration=c,
        prediction=prediction,
        steps=steps,
        time_s=time,
        besides=beside,
        cost_usd=_cost(time, price, space.paid(instance.name), count),
        price=price,
        mfu=None
        if task.model.kind == "custom"
        else task.flops_per_token * prediction.tokens_per_s / (peak * 1e12 * c.machine.devices),
        advice=advice(task, c.global_batch),
        warnings=(
            *choice.remarks,
            *_container(task, instance),
            *_warnings(task),
            *(_spot(space, instance.name) if price is not None and space.spot else ()),
            *_unmeasured(task, c),
            *_host_threads(c, choice),
        ),
    )


def _cost(time: Range, price: Price | None, paid: Paid, count: int) -> Range | None:
    if price is None:
        return None
    shares = Range(time.low * paid.low, time.expected * paid.expected, time.high * paid.high)
    cost = shares.times(price.usd_per_hour / 3600 * count)
    return cost.widened(PRICE_FACTOR) if price.estimate else cost


class Longest(NamedTuple):
    """The limit on the time of a plan that is the first to be broken."""

    seconds: float
    reason: Reason
    detail: str


def longest_s(space: Space, objective: Objective, usd_per_s: float | None) -> Longest:
    """Return the seconds that a plan may take on a cluster with this price."""
    most = duration(space.longest_run_s)
    limits = [Longest(space.longest_run_s, "run time", f"and a training job ends after {most}")]
    if objective.deadline_s is not None:
        text = f"too long for the deadline of {duration(objective.deadline_s)}"
        limits.append(Longest(objective.deadline_s, "deadline", text))
    if objective.budget_usd is not None and usd_per_s:
        text = f"too expensive for the budget of {money(objective.budget_usd)}"
        limits.append(Longest(objective.budget_usd / usd_per_s, "budget", text))
    return min(limits, key=lambda limit: limit.seconds)


def broken_limit(plan: Plan, space: Space, objective: Objective) -> tuple[Reason, str] | None:
    """Return the first limit that a plan breaks at the high end of its prediction."""
    longest = plan.time_s.high
    if longest > space.longest_run_s:
        limit = duration(space.longest_run_s)
        return ("run time", f"may take {duration(longest)}; a training job ends after {limit}")
    if objective.deadline_s is not None and longest > objective.deadline_s:
        over = duration(longest - objective.deadline_s)
        return ("deadline", f"may take {duration(longest)}, {over} too long")
    budget = objective.budget_usd
    if budget is not None and plan.cost_usd is not None and plan.cost_usd.high > budget:
        cost = plan.cost_usd.high
        return ("budget", f"may cost {money(cost)}, {money(cost - budget)} too much")
    return None


def is_expected_within(plan: Plan, space: Space, objective: Objective) -> bool:
    """Return whether a plan keeps every limit at its expected time and cost."""
    time, cost = plan.time_s.expected, plan.cost_usd
    sure = replace(
        plan,
        time_s=Range(time, time, time),
        cost_usd=None if cost is None else Range(cost.expected, cost.expected, cost.expected),
    )
    return broken_limit(sure, space, objective) is None


_HOPPER: Final = 9.0
"""Compute capability; containers in use drive all older GPUs."""


def _container(task: Task, instance: Instance) -> Iterator[str]:
    """Name the oldest container that drives recent GPUs, if the task names none."""
    framework = task.framework
    capability = float(accelerators()[instance.accelerator or ""].capability or 0)
    if framework.version is None and framework.image is None and capability >= _HOPPER:
        name = "pytorch" if framework.name == "huggingface" else framework.name
        version = first_version(name, instance.name)
        if version is not None:
            yield f"{instance.name} needs AWS's container of {name} {version} or later"


def _unmeasured(task: Task, c: Configuration) -> Iterator[str]:
    """Name what a plan for a model without a formula takes from no measurement of its own."""
    if task.model.kind != "custom":
        return
    if not any(each.peak_memory_gib for each in task.measurements):
        yield "memory was not measured: only the model's states are known to fit"
    accumulates = c.micro_batches > 1
    if accumulates:
        yield (
            f"the script must accumulate {c.micro_batches} micro-batches of {c.micro_batch}; "
            "tell it so by strategy.tell"
        )


def _host_threads(c: Configuration, choice: StrategyChoice) -> Iterator[str]:
    """Say how many threads a host's optimizer needs, which ``torchrun`` does not give it."""
    machine = c.machine
    started = choice.strategy is not None and choice.strategy.kind == "torch_distributed"
    if c.offload == "none" or not started or machine.devices_per_node == 1 or not machine.vcpus:
        return
    usual = host_rate(machine) / host_rate(replace(machine, host_threads=1))
    if usual > 1:
        yield (
            f"set OMP_NUM_THREADS={machine.vcpus // machine.devices_per_node} in the environment: "
            "torchrun otherwise gives each process one thread, and updating the states on the "
            f"host takes {usual:.1f} times as long"
        )


def _spot(space: Space, name: str) -> Iterator[str]:
    """Say what the cost of a plan on spot assumes."""
    history = space.measured_spot(name)
    if history is None and not space.spot_saving:
        yield "the saving of spot is unknown; the cost is that of on-demand instances"
        return
    measured = "" if history is None else f", as {history} did"
    yield (
        f"the cost assumes that spot saves {space.paid(name).saving()}{measured}; the time assumes "
        "no interruption"
    )


def _warnings(task: Task) -> list[str]:
    warnings = []
    if task.startup_s:
        warnings.append(
            "a warm pool (cluster.keep_alive_s) lets the next job start sooner; its idle time is "
            "billed"
        )
    if task.model.approximate:
        warnings.append("the model's shape is guessed from its size; give its config.json")
    trained = task.model.max_sequence
    if trained is not None and task.sequence > trained:
        warnings.append(
            f"the model was made for {trained:,} tokens; samples of {task.sequence:,} need more "
            "positions"
        )
    return warnings
