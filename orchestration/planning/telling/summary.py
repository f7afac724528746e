"""Plans in words and short tables, for the command line and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Final

from orchestration.catalog import instance
from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.plans import Plan, Plans, Range

HEADINGS: Final = ("instances", "layout", "strategy", "batch", "memory", "MFU", "time", "cost")


def row(plan: Plan) -> tuple[str, ...]:
    """A plan as one line under `HEADINGS`."""
    c = plan.configuration
    return (
        f"{plan.instance_count} x {plan.instance_type}",
        str(plan.layout),
        plan.strategy.kind,
        f"{c.global_batch} = {c.micro_batch} x {c.micro_batches} x {c.data}",
        f"{plan.prediction.memory.need:,.1f} of {c.machine.device_memory_gib:,.0f} GiB",
        f"{plan.mfu:.0%}",
        duration(plan.time_s.expected),
        money(plan.cost_usd.expected) if plan.cost_usd is not None else "?",
    )


def answer(plans: Plans) -> list[tuple[str, str]]:
    """What there is to know of the chosen plan, and of a simpler one that would do."""
    told = [] if plans.chosen is None else facts(plans.chosen)
    if plans.chosen is not None and (simpler := plans.simpler) is not None:
        slower = simpler.time_s.expected / plans.chosen.time_s.expected - 1
        text = f"{simpler.layout} ({simpler.strategy.kind}) is simpler and about as fast"
        told.append(("note", f"{text} ({slower:+.1%} time)"))
    return told


def facts(plan: Plan) -> list[tuple[str, str]]:
    """What there is to know of a plan, with its name."""
    c, p = plan.configuration, plan.prediction
    told = [
        ("instances", f"{plan.instance_count} x {plan.instance_type}"),
        ("layout", f"{plan.layout}, started by {plan.strategy.kind}"),
        ("batch", _batch(plan)),
        ("precision", _precision(plan)),
        (
            "memory",
            f"{p.memory.need:,.1f} GiB per device needed, {plan.headroom_gib:,.1f} GiB free",
        ),
        ("step", f"{p.step_time_s:,.3f} s, {p.tokens_per_s:,.0f} tokens/s, MFU {plan.mfu:.0%}"),
        ("steps", f"{plan.steps:,}"),
        ("time", _range(plan.time_s, duration)),
        ("cost", _cost(plan)),
        ("certainty", "four in five such predictions lie within these ends"),
    ]
    if plan.advice is not None:
        text = f"{plan.advice.rate:.3g} ({plan.advice.rule} rule, x {plan.advice.factor:.3g})"
        note = f"; {plan.advice.note}" if plan.advice.note else ""
        told.append(("learning rate", text + note))
    told += [("note", text) for text in (*plan.warnings, *_placement(plan))]
    if c.recompute != "none" or c.offload != "none":
        saved = [f"{c.recompute} recomputation"] if c.recompute != "none" else []
        saved += [f"{c.offload} offloaded to the host"] if c.offload != "none" else []
        told.insert(4, ("to save memory", ", ".join(saved)))
    return told


def memory_parts(plan: Plan) -> list[tuple[str, float]]:
    """GiB of the fullest device, by what they hold."""
    return _numbers(plan.prediction.memory)


def time_parts(plan: Plan) -> list[tuple[str, float]]:
    """Seconds of a step, by what they go to."""
    return _numbers(plan.prediction.time)


def _placement(plan: Plan) -> Iterator[str]:
    """What several instances want of the network.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
    """
    if plan.instance_count == 1:
        return
    known = instance(plan.instance_type)
    yield "give one subnet, so that all instances are in one Availability Zone"
    if known is not None and known.efa:
        yield "in a VPC, EFA needs a security group that lets all traffic in from and out to itself"


def _batch(plan: Plan) -> str:
    c = plan.configuration
    return (
        f"{c.global_batch} samples = {c.micro_batch} per device x {c.micro_batches} accumulated "
        f"x {c.data} replicas; {c.tokens:,} tokens"
    )


def _precision(plan: Plan) -> str:
    c = plan.configuration
    return f"{c.precision}, attention {c.attention}"


def _range(value: Range, say: Callable[[float], str]) -> str:
    return f"{say(value.expected)} ({say(value.low)} to {say(value.high)})"


def _cost(plan: Plan) -> str:
    if plan.cost_usd is None or plan.price is None:
        return "no price is known"
    known = plan.price
    kind = "estimated" if known.estimate else "listed"
    when = known.date or "undated"
    rate = f"{money(known.usd_per_hour)}/h {kind}, {known.region}, {when}"
    return f"{_range(plan.cost_usd, money)} at {rate}" + (f"; {known.note}" if known.note else "")


def _numbers(parts: object) -> list[tuple[str, float]]:
    every = fields(parts)  # type: ignore[arg-type]  # only called with dataclasses
    return [(one.name, getattr(parts, one.name)) for one in every]
