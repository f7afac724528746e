"""The answer on one screen: the choice, why not the nearest others, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import Final

from orchestration.catalog import Price, is_scarce
from orchestration.planning.search.amounts import duration, hourly, money
from orchestration.planning.search.answers.plans import Plan, Plans, Range
from orchestration.planning.telling.changes import changes, short
from orchestration.planning.telling.measured import measured
from orchestration.planning.telling.nearest import nearest

_COLUMN: Final = 12
_MOST_CHANGES: Final = 3
Entry = tuple[str, Sequence[str]]
"""A name, and lines of which each is wrapped by itself."""


def screen(plans: Plans, title: str, width: int | None = None) -> list[str]:
    """Return the lines of an answer; those that are longer than `width` are wrapped."""
    if plans.chosen is None:
        lines = [f"{title}: no plan ({plans.objective})"]
        return [*lines, *_wrapped([("", plans.missing)], width)]
    heading = f"{title}: {plans.objective}"
    return [heading, *_wrapped(entries(plans, plans.chosen), width)]


def entries(plans: Plans, chosen: Plan) -> list[Entry]:
    """Return the facts of an answer, by name."""
    near = nearest(plans)
    written = [
        *_choice(chosen),
        ("measured", measured(plans)),
        ("why not", [str(each) for each in near]),
        ("depends on", changes(plans)[:_MOST_CHANGES]),
        ("note", list(_notes(plans, chosen))),
        ("prices", [_prices(plans, [chosen.instance_type, *(e.instance_type for e in near)])]),
    ]
    return [(name, lines) for name, lines in written if lines]


def _choice(plan: Plan) -> Iterator[Entry]:
    c, p = plan.configuration, plan.prediction
    started = "" if plan.strategy.kind == "none" else f", started by {plan.strategy.kind}"
    yield "take", [f"{plan.instance_count} x {plan.instance_type}: {plan.layout}{started}"]
    step = duration(p.step_time_s)
    peak = "" if plan.mfu is None else f", {plan.mfu:.0%} of the devices' peak"
    speed = f"{plan.steps:,} steps of {step}{peak}"
    yield "time", [f"{in_range(plan.time_s, duration)}: {', '.join([speed, *plan.besides.parts])}"]
    if plan.cost_usd is not None:
        yield "cost", [f"{in_range(plan.cost_usd, money)}, in four of five cases within that range"]
    room = plan.headroom_gib + p.memory.need
    saved = [f"{c.recompute} recomputation"] if c.recompute != "none" else []
    saved += [f"{c.offload} offloaded"] if c.offload != "none" else []
    how = f", with {' and '.join(saved)}" if saved else ""
    yield "memory", [f"{p.memory.need:,.0f} of {room:,.0f} GiB on each device{how}"]
    per_device = f"{c.micro_batch} at a time x {c.micro_batches} accumulated x {c.data} replicas"
    yield "batch", [f"{c.global_batch:,} samples: {per_device}, {c.precision}"]
    if plan.advice is not None:
        note = f"; {plan.advice.note}" if plan.advice.note else ""
        factor = f"{plan.advice.rule} rule, x {plan.advice.factor:.3g}"
        yield "rate", [f"{plan.advice.rate:.3g} ({factor}){note}"]


def in_range(value: Range, form: Callable[[float], str]) -> str:
    """Format a prediction and its interval; a unit that both ends share is said once.

    >>> in_range(Range(2700, 3540, 4620), duration)
    '59 min (45 to 77 min)'
    """
    low, expected, high = form(value.low), form(value.expected), form(value.high)
    if low == high:
        return expected
    amount, _, unit = low.partition(" ")
    return f"{expected} ({amount if unit and unit in high.split() else low} to {high})"


def _notes(plans: Plans, plan: Plan) -> Iterator[str]:
    yield from plan.warnings
    if (listed := plans.listed) is not None:
        yield f"the price is an estimate; at a listed price, {short(listed)}"
    if is_scarce(plan.instance_type):
        yield f"{plan.instance_type} is scarce (a prior): ask for quota early, or reserve"
    if plan.instance_count > 1:
        yield "give one subnet; EFA needs a security group that is open to itself"


def _prices(plans: Plans, names: Sequence[str]) -> str:
    known = {name: plans.prices[name] for name in names if name in plans.prices}
    groups: dict[str, list[str]] = {}
    for name, price in known.items():
        groups.setdefault(_kind(price), []).append(f"{name} {hourly(price.usd_per_hour)}")
    listed = "; ".join(f"{kind}: {', '.join(group)}" for kind, group in groups.items())
    return f"{plans.region}, on demand, {listed}" if known else ""


def _kind(price: Price) -> str:
    date = f"of {price.date}" if price.date else "without a date"
    return f"{'estimated' if price.estimate else 'listed'} {date}"


def _wrapped(facts: Sequence[Entry], width: int | None) -> Iterator[str]:
    for name, lines in facts:
        label = f"{name:<{_COLUMN}}" if name else "  "
        indent = " " * len(label)
        for line in lines:
            yield from _lines(line, label, indent, width)
            label = indent


def _lines(line: str, label: str, indent: str, width: int | None) -> list[str]:
    if width is None:
        return [label + line]
    return wrap(line, width, initial_indent=label, subsequent_indent=f"{indent}  ")
