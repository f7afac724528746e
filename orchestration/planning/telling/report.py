"""A web page about a plan: its time, memory and cost, its alternatives, and the rejections.

The page is one file without scripts and loads nothing from a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.answers.plans import HEADINGS, Plan, Plans, row
from orchestration.planning.search.answers.rejections import rejected
from orchestration.planning.telling.axes import axis
from orchestration.planning.telling.charts import Bar, Line, Point, bars, plot
from orchestration.planning.telling.page_style import STYLE
from orchestration.planning.telling.screen import entries
from orchestration.planning.telling.summary import memory_parts, time_parts

_MOST_BARS: Final = 5
_Row = tuple[str, ...]


def page(plans: Plans, title: str = "") -> str:
    """Return the report as one HTML document; `title` names the pipeline and its stage."""
    model = plans.task.model.name
    named = f"{title}: {model}" if title else model
    body = [f"<h1>{escape(named)}</h1>", f'<p class="aim">{escape(str(plans.objective))}</p>']
    if plans.chosen is None:
        body += [f'<p class="missing">{escape(line)}</p>' for line in plans.missing]
    else:
        body += _chosen(plans, plans.chosen)
    reasons = [(group.what, group.reason, group.detail) for group in rejected(plans)]
    body += ["<h2>Rejected</h2>", _table(("what", "reason", "why"), reasons)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Plan: {escape(named)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _chosen(plans: Plans, plan: Plan) -> Iterator[str]:
    yield _facts(entries(plans, plan))
    shown = [each for each in plans.front if each.cost_usd is not None]
    if plan.cost_usd is not None and plan not in shown:
        shown.append(plan)
    if shown:
        yield "<h2>Time and cost</h2>"
        yield "<p>Plans that no other beats in both, and the chosen one (orange).</p>"
        yield _frontier(plans, shown, plan)
        yield _numbered(shown, plan)
    yield "<h2>Memory of the fullest device</h2>"
    yield _memory(plans, plan)
    yield "<h2>One step</h2>"
    yield _step(plans, plan)
    if len(plans.scaling) > 1:
        yield f"<h2>More or fewer {escape(plan.instance_type)}</h2>"
        yield _scaling(plans, plan)
    if plans.alternatives:
        yield "<h2>Other layouts on the same instances</h2>"
        yield _table(HEADINGS, map(row, plans.alternatives))


def _facts(facts: Iterable[tuple[str, Sequence[str]]]) -> str:
    rows = (
        f"<tr><th>{escape(name)}</th><td>{'<br>'.join(map(escape, lines))}</td></tr>"
        for name, lines in facts
    )
    return f'<table class="facts">{"".join(rows)}</table>'


def _table(headings: Sequence[str], rows: Iterable[_Row], chosen: int | None = None) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    lines = []
    for number, cells in enumerate(rows):
        named = zip(headings, cells, strict=True)
        text = "".join(f'<td data-name="{name}">{escape(cell)}</td>' for name, cell in named)
        kind = ' class="chosen"' if number == chosen else ""
        lines.append(f"<tr{kind}>{text}</tr>")
    return f'<table class="wide"><tr>{head}</tr>{"".join(lines)}</table>'


def _numbered(shown: Sequence[Plan], chosen: Plan) -> str:
    rows = [(str(number), *row(plan)) for number, plan in enumerate(shown, start=1)]
    return _table(("no.", *HEADINGS), rows, shown.index(chosen) if chosen in shown else None)


def _frontier(plans: Plans, shown: Sequence[Plan], chosen: Plan) -> str:
    unit, seconds = _unit([plan.time_s.expected for plan in shown])
    points = [
        Point(
            x=plan.time_s.expected / seconds,
            y=_cost(plan),
            low=plan.time_s.low / seconds,
            high=plan.time_s.high / seconds,
            number=str(number),
            name=(
                f"{plan.instance_count} x {plan.instance_type}",
                f"{duration(plan.time_s.expected)}, {money(_cost(plan))}",
            ),
            special=plan is chosen,
        )
        for number, plan in enumerate(shown, start=1)
    ]
    ends = [end for point in points for end in (point.low, point.high) if end]
    aim = plans.objective
    deadline = [] if aim.deadline_s is None else [aim.deadline_s / seconds]
    budget = [] if aim.budget_usd is None else [aim.budget_usd]
    x = axis(f"time of the training, {unit}", [*ends, *deadline], _plain)
    y = axis("cost, US dollars", [*(point.y for point in points), *budget], _dollars)
    front = [(point.x, point.y) for point in points if not point.special or chosen in plans.front]
    lines = [
        Line(front, "front"),
        *(Line([(end, y.low), (end, y.high)], "bound", "deadline") for end in deadline),
        *(Line([(x.low, end), (x.high, end)], "bound", "budget") for end in budget),
    ]
    return plot(points, lines, x, y)


def _cost(plan: Plan) -> float:
    return 0.0 if plan.cost_usd is None else plan.cost_usd.expected


def _unit(times: Sequence[float]) -> tuple[str, float]:
    """Return the unit that suits most of some times, and its seconds."""
    middle = sorted(times)[len(times) // 2]
    if middle < 5400:
        return "minutes", 60.0
    return ("hours", 3600.0) if middle < 3 * 86400 else ("days", 86400.0)


def _plain(value: float) -> str:
    return f"{value:,.6g}"


def _dollars(value: float) -> str:
    return f"${value / 1e6:,.6g} M" if value >= 1e6 else f"${value:,.6g}"


def _compared(plans: Plans, chosen: Plan) -> list[Plan]:
    """Return the chosen plan and the fastest of other layouts."""
    return [chosen, *plans.alternatives][:_MOST_BARS]


def _memory(plans: Plans, chosen: Plan) -> str:
    whole = chosen.configuration.machine.device_memory_gib
    usable = chosen.prediction.memory.need + chosen.headroom_gib
    rows = [
        Bar(
            label=str(plan.layout),
            total=f"{plan.prediction.memory.need:,.0f} of {usable:,.0f} GiB",
            parts=[part for part in memory_parts(plan) if part[0] != "slack"],
        )
        for plan in _compared(plans, chosen)
    ]
    text = f"The dashed line is the limit: {usable:,.1f} of {whole:,.0f} GiB can be used."
    return bars(rows, "GiB", usable, whole) + f"<p>{text}</p>"


def _step(plans: Plans, chosen: Plan) -> str:
    rows = [
        Bar(
            label=str(plan.layout),
            total=duration(plan.prediction.step_time_s),
            parts=time_parts(plan),
        )
        for plan in _compared(plans, chosen)
    ]
    return bars(rows, "s")


def _scaling(plans: Plans, chosen: Plan) -> str:
    first = plans.scaling[0]
    unit = first.time_s.expected * first.instance_count
    points = [
        Point(
            x=plan.instance_count,
            y=unit / plan.time_s.expected,
            number=str(plan.instance_count),
            name=(str(plan.layout), duration(plan.time_s.expected)),
            special=plan.instance_count == chosen.instance_count,
        )
        for plan in plans.scaling
    ]
    ideal = [(point.x, point.x) for point in points]
    x = axis("instances", [point.x for point in points], _plain)
    values = [value for point in points for value in (point.x, point.y)]
    y = axis("speed, in single instances (dotted: without losses)", values, _plain)
    return plot(points, [Line([(p.x, p.y) for p in points], "front"), Line(ideal, "ideal")], x, y)
