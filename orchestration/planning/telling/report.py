"""A web page about a plan: its time, memory and cost, its alternatives, and the rejections.

The page is one file and loads nothing from a server. Its charts need plotly, the extra ``plan``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any

from orchestration.planning.search.answers.plans import Plan, Plans, Range
from orchestration.planning.search.answers.rejections import rejected
from orchestration.planning.telling.summary import (
    HEADINGS,
    answer,
    memory_parts,
    row,
    time_parts,
)

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #222;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top; }
th { font-weight: 600; white-space: nowrap; }
.missing { border-left: 4px solid #c33; padding-left: 1rem; }
"""


def page(plans: Plans) -> str:
    """Return the report as one HTML document."""
    model = escape(plans.task.model.name)
    body = [f"<h1>Training {model}: {escape(str(plans.objective))}</h1>"]
    if plans.chosen is None:
        body += [f'<p class="missing">{escape(line)}</p>' for line in plans.missing]
    else:
        body += _chosen(plans, plans.chosen)
    reasons = [(group.what, group.reason, group.detail) for group in rejected(plans)]
    body += ["<h2>Rejected</h2>", _table(("what", "reason", "why"), reasons)]
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>Plan: {model}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _chosen(plans: Plans, plan: Plan) -> list[str]:
    return [
        _facts(answer(plans)),
        "<h2>Time and cost</h2>",
        "<p>Every plan that no other beats in both.</p>",
        _drawn(_pareto(plans, plan), first=True),
        _table(HEADINGS, map(row, plans.front)),
        "<h2>Memory of the fullest device</h2>",
        _drawn(_memory(plan)),
        "<h2>One step</h2>",
        _drawn(_bars(time_parts(plan), "seconds")),
        f"<h2>More or fewer {escape(plan.instance_type)}</h2>",
        _drawn(_scaling(plans)),
        "<h2>Other layouts on the same instances</h2>",
        _table(HEADINGS, map(row, plans.alternatives)),
    ]


def _facts(lines: Iterable[tuple[str, str]]) -> str:
    rows = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in lines)
    return f"<table>{''.join(rows)}</table>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in cells) for cells in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _plotly() -> Any:
    """Return the drawing library: an extra, without types."""
    return import_module("plotly.graph_objects")


def _drawn(figure: Any, *, first: bool = False) -> str:
    """Return a figure as HTML; the first includes the script that draws all of them."""
    figure.update_layout(
        template="plotly_white", height=360, margin={"l": 60, "r": 20, "t": 20, "b": 50}
    )
    html = figure.to_html(
        full_html=False, include_plotlyjs=first, config={"displaylogo": False}, div_id=None
    )
    return str(html)


def _pareto(plans: Plans, chosen: Plan) -> Any:
    figure = _plotly().Figure()
    front = [plan for plan in plans.front if plan.cost_usd is not None]
    for name, plotted in (("not beaten", front), ("chosen", [chosen])):
        priced = [(plan, plan.cost_usd) for plan in plotted if plan.cost_usd is not None]
        figure.add_trace(
            _plotly().Scatter(
                x=[plan.time_s.expected / 3600 for plan, _ in priced],
                y=[cost.expected for _, cost in priced],
                error_x=_error_bars([plan.time_s.times(1 / 3600) for plan, _ in priced]),
                text=[f"{plan.instance_count} x {plan.instance_type}" for plan, _ in priced],
                name=name,
                mode="markers" if name == "chosen" else "lines+markers",
                marker={"size": 14 if name == "chosen" else 8},
            )
        )
    figure.update_xaxes(title="hours", type="log")
    figure.update_yaxes(title="US dollars", type="log")
    return figure


def _error_bars(ranges: Sequence[Range]) -> dict[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [value.high - value.expected for value in ranges],
        "arrayminus": [value.expected - value.low for value in ranges],
    }


def _memory(plan: Plan) -> Any:
    parts = [*memory_parts(plan), ("free", max(0.0, plan.headroom_gib))]
    return _bars([(name, gib) for name, gib in parts if name != "slack"], "GiB")


def _bars(parts: Sequence[tuple[str, float]], unit: str) -> Any:
    shown = [(name, value) for name, value in parts if value > 0]
    bar = _plotly().Bar(
        x=[value for _, value in shown],
        y=[name for name, _ in shown],
        orientation="h",
        text=[f"{value:.3g}" for _, value in shown],
    )
    figure = _plotly().Figure(bar)
    figure.update_xaxes(title=unit)
    figure.update_yaxes(autorange="reversed")
    return figure


def _scaling(plans: Plans) -> Any:
    counts = [plan.instance_count for plan in plans.scaling]
    speeds = [1 / plan.time_s.expected for plan in plans.scaling]
    ideal = [speeds[0] * count / counts[0] for count in counts] if counts else []
    unit = speeds[0] / counts[0] if counts else 1.0
    figure = _plotly().Figure()
    for name, values in (("predicted", speeds), ("ideal", ideal)):
        figure.add_trace(
            _plotly().Scatter(
                x=counts,
                y=[value / unit for value in values],
                name=name,
                mode="lines+markers" if name == "predicted" else "lines",
                line={"dash": "solid" if name == "predicted" else "dot"},
            )
        )
    figure.update_xaxes(title="instances", type="log")
    figure.update_yaxes(title="speed, in single instances", type="log")
    return figure
