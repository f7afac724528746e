"""The dollars of a run and of a month, before they are spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from orchestration.cli import values
from orchestration.cli.naming import Named, named
from orchestration.cli.output import FAILED, console, document, note, say

if TYPE_CHECKING:
    from rich.table import Table

    from orchestration.catalog import Rate
    from orchestration.pipeline import Pipeline
    from orchestration.pricing import Estimate, Expected, Line, Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The figures given beyond the pipeline."""

    parameters: Sequence[str]
    assumed: Sequence[str]
    region: str | None
    spot_saving: float
    runs_per_month: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The dollars that must not be exceeded."""

    run: float | None
    month: float | None


def cost(
    pipeline: str, asked: Asked, budget: Budget, expected: Mapping[str, Expected], *, as_json: bool
) -> None:
    """Show the estimate; exit with 1 where it may exceed the budget, or nobody knows."""
    which = named(pipeline)
    loaded = which.load()
    found = estimated(loaded, asked, {**_planned(which), **expected})
    over = [*_over("a run", found.run, budget.run)]
    if budget.month is not None:
        if found.month is None:
            raise typer.BadParameter(
                "needs --runs-per-month, as the pipeline has no schedule",
                param_hint="--monthly-budget",
            )
        over += _over("a month", found.month, budget.month)
    if as_json:
        document({**found.data(), "over_budget": over})
    else:
        _show(found, named_region=bool(asked.region or loaded.region))
    for text in over:
        note(f"error: {text}")
    if over:
        raise typer.Exit(FAILED)


def estimated(pipeline: Pipeline, asked: Asked, expected: Mapping[str, Expected]) -> Estimate:
    """Return the estimate of a pipeline with what is given."""
    from orchestration.backends import stepfunctions
    from orchestration.catalog import best_known_region
    from orchestration.pipeline.schedules.firing import runs_per_month
    from orchestration.pricing import Assumptions, estimate
    from orchestration.pricing.assumptions import parse
    from orchestration.pricing.estimating import stages

    workflow = pipeline.lower()
    specs = pipeline.parameter_specs()
    given = values.parameters(specs, asked.parameters, filled=[spec.name for spec in specs])
    schedule = workflow.schedule
    times = asked.runs_per_month
    if times is None and schedule is not None:
        times = runs_per_month(schedule)
    assumptions = Assumptions(
        values=parse(asked.assumed, stages(workflow.graph)),
        expected=expected,
        spot_saving=asked.spot_saving,
        runs_per_month=times,
    )
    return estimate(
        workflow,
        assumptions,
        region=asked.region or pipeline.region or best_known_region(),
        parameters=given,
        definition=stepfunctions.render(workflow),
    )


def _planned(which: Named) -> dict[str, Expected]:
    """Return the hours of jobs whose plans the lock file pins."""
    from orchestration.pipeline.pinning.lock_file import lock_path
    from orchestration.pricing import Expected

    if which.path is None or not (lock := lock_path(which.path)).exists():
        return {}
    plans = json.loads(lock.read_text(encoding="utf-8")).get("plans") or {}
    return {
        stage: Expected(pin["predicted"]["hours"], "planned")
        for stage, pin in plans.items()
        if pin.get("predicted", {}).get("hours")
    }


def _over(of: str, total: Sum, budget: float | None) -> list[str]:
    if budget is None:
        return []
    if total.most_usd is None:
        return [f"{of} has no bound, so that no budget holds; what is missing is named above"]
    if total.most_usd > budget:
        return [f"{of} may cost {usd(total.most_usd)}, and the budget is {usd(budget)}"]
    return []


def _show(found: Estimate, *, named_region: bool) -> None:
    console().print(_table(found))
    lacking = [*found.lacking()]
    say(f"a run: {_sum(found.run)}")
    standing = [line for line in found.lines if line.period == "month"]
    if standing:
        say(f"what stays after it, a month: {_sum(found.standing)}")
    if found.month is not None:
        say(f"a month with {found.runs_per_month:.3g} runs: {_sum(found.month)}")
    for text in lacking:
        say(f"unknown: {text}")
    told = [f"{line.stage}: {text}" for line in found.lines for text in line.notes]
    for text in dict.fromkeys(told):
        say(f"note: {text}")
    if not named_region:
        say(f"note: nothing names a region; prices are those of {found.region}")
    if any(line.rate is not None and line.rate.estimate for line in found.lines):
        say("note: ~ marks estimated prices: of another region, or derived; at most adds a tenth")
    for call in found.unpriced:
        say(f"not in the sums: {call}, for which no price is known")
    for text in found.outside:
        say(f"not in the sums: {text}")


def _table(found: Estimate) -> Table:
    from rich.table import Table

    table = Table(title=f"{found.pipeline} in {found.region}", title_justify="left")
    for heading in ("stage", "what", "quantity", "price", "of", "expected", "at most"):
        right = heading in ("quantity", "price", "expected", "at most")
        table.add_column(heading, justify="right" if right else "left")
    for line in found.lines:
        each = " a month" if line.period == "month" else ""
        table.add_row(
            line.stage,
            line.what + (" (or instead)" if line.alternative else ""),
            _quantity(line),
            price(line),
            "" if line.rate is None else f"{line.rate.region} {line.rate.dated}",
            usd(line.expected_usd) + (each if line.expected_usd is not None else ""),
            usd(line.most_usd) + (each if line.most_usd is not None else ""),
        )
    return table


def _quantity(line: Line) -> str:
    if line.rate is None:
        return ""
    low, high = ("?" if n is None else f"{n:,.4g}" for n in (line.expected, line.most))
    return low if low == high else f"{low} to {high}"


def price(line: Line) -> str:
    """Format the price of a line's unit; ``~`` marks an estimate."""
    rate: Rate | None = line.rate
    if rate is None:
        return "unknown"
    sign = "~" if rate.estimate else ""
    return f"{sign}${rate.usd:.10g}/{rate.per}"


def _sum(total: Sum) -> str:
    expected = "unknown" if total.expected_usd is None else usd(total.expected_usd)
    if total.most_usd is not None:
        return f"expected {expected}, at most {usd(total.most_usd)}"
    return f"expected {expected}, no bound; what has one: at most {usd(total.known_most_usd)}"


def usd(usd: float | None) -> str:
    """Format dollars: cents, and what is less than one as that.

    >>> usd(None), usd(0.0003), usd(12.345), usd(123456.7)
    ('unknown', 'below $0.01', '$12.35', '$123,457')
    """
    if usd is None:
        return "unknown"
    if 0 < usd < 0.01:
        return "below $0.01"
    return f"${usd:,.2f}" if usd < 10_000 else f"${usd:,.0f}"
