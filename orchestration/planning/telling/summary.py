"""Plans as text and short tables, for the command line and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from orchestration.catalog import instance, is_scarce
from orchestration.planning.search.amounts import duration, hourly, money
from orchestration.planning.search.answers.plans import Plan, Plans, Range
from orchestration.planning.search.preference import why_doubtful
from orchestration.planning.telling.changes import short


def answer(plans: Plans) -> list[tuple[str, str]]:
    """Return the facts about the chosen plan, with what speaks for others."""
    lines = [] if plans.chosen is None else facts(plans.chosen)
    if (listed := plans.listed) is not None:
        lines.append(("note", f"the price is an estimate; at a listed price, {short(listed)}"))
    if (best := plans.passed_over) is not None:
        unknown = why_doubtful(plans.task, best, plans.chosen)
        lines.append(("note", f"{short(best)} is within the uncertainty, but {unknown}"))
    if plans.chosen is not None and is_scarce(plans.chosen.instance_type):
        name = plans.chosen.instance_type
        lines.append(("note", f"{name} is often out of stock (a prior); ask for quota, or reserve"))
    return lines


def facts(plan: Plan) -> list[tuple[str, str]]:
    """Return the facts about a plan, each with its name."""
    c, p = plan.configuration, plan.prediction
    lines = [
        ("instances", f"{plan.instance_count} x {plan.instance_type}"),
        ("layout", f"{plan.layout}, started by {plan.strategy.kind}"),
        ("batch", _batch(plan)),
        ("precision", _precision(plan)),
        (
            "memory",
            f"{p.memory.need:,.1f} GiB per device needed, {plan.headroom_gib:,.1f} GiB free",
        ),
        ("step", f"{p.step_time_s:,.3f} s, {_speed(plan)}"),
        ("steps", f"{plan.steps:,}"),
        ("time", "; ".join([_range(plan.time_s, duration), *plan.besides.parts])),
        ("cost", _cost(plan)),
        ("certainty", "four in five measurements are within these ranges"),
    ]
    if plan.advice is not None:
        text = f"{plan.advice.rate:.3g} ({plan.advice.rule} rule, x {plan.advice.factor:.3g})"
        note = f"; {plan.advice.note}" if plan.advice.note else ""
        lines.append(("learning rate", text + note))
    lines += [("note", text) for text in (*plan.warnings, *_placement(plan))]
    if c.recompute != "none" or c.offload != "none":
        saved = [f"{c.recompute} recomputation"] if c.recompute != "none" else []
        saved += [f"{c.offload} offloaded to the host"] if c.offload != "none" else []
        lines.insert(4, ("to save memory", ", ".join(saved)))
    return lines


def _speed(plan: Plan) -> str:
    if plan.mfu is None:
        samples = plan.configuration.global_batch / plan.prediction.step_time_s
        return f"{samples:,.0f} samples/s"
    return f"{plan.prediction.tokens_per_s:,.0f} tokens/s, MFU {plan.mfu:.0%}"


def memory_parts(plan: Plan) -> list[tuple[str, float]]:
    """Return the GiB of the fullest device, by use."""
    return _numbers(plan.prediction.memory)


def time_parts(plan: Plan) -> list[tuple[str, float]]:
    """Return the seconds of a step, by activity."""
    return _numbers(plan.prediction.time)


def _placement(plan: Plan) -> Iterator[str]:
    """Return advice on the network of several instances.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
    """
    if plan.instance_count == 1:
        return
    known = instance(plan.instance_type)
    yield "give one subnet, so that all instances are in one Availability Zone"
    if known is not None and known.efa:
        yield "in a VPC, EFA needs a security group that allows all traffic from and to itself"


def _batch(plan: Plan) -> str:
    c = plan.configuration
    samples = (
        f"{c.global_batch} samples = {c.micro_batch} per device x {c.micro_batches} accumulated "
        f"x {c.data} replicas"
    )
    return samples if plan.mfu is None else f"{samples}; {c.tokens:,} tokens"


def _precision(plan: Plan) -> str:
    c = plan.configuration
    return c.precision if plan.mfu is None else f"{c.precision}, attention {c.attention}"


def _range(value: Range, form: Callable[[float], str]) -> str:
    return f"{form(value.expected)} ({form(value.low)} to {form(value.high)})"


def _cost(plan: Plan) -> str:
    if plan.cost_usd is None or plan.price is None:
        return "unknown"
    price = plan.price
    kind = "estimated" if price.estimate else "listed"
    date = price.date or "undated"
    rate = f"{hourly(price.usd_per_hour)} {kind}, {price.region}, {date}"
    return f"{_range(plan.cost_usd, money)} at {rate}" + (f"; {price.note}" if price.note else "")


def _numbers(parts: object) -> list[tuple[str, float]]:
    names = [field.name for field in fields(parts)]  # type: ignore[arg-type]  # only called with dataclasses
    return [(name, getattr(parts, name)) for name in names]
