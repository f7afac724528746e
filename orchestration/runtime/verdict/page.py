"""The report as one page of HTML that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from html import escape
from typing import Any, Iterator, Mapping, Sequence

from .drawing import bars, dots

_WORDS = {
    "promoted": "Promoted",
    "champion_kept": "The champion is kept",
    "below_threshold": "Below the threshold",
    "bounds_missed": "No model keeps all bounds",
    "no_checkpoint": "There is no checkpoint",
    "evaluations_failed": "Too many evaluations failed",
    "not_finite": "No metric is finite",
    "champion_not_evaluated": "The champion could not be evaluated",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1c2330; background: #fff; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { border-left: .4rem solid #b3261e; padding: .6rem 1rem; background: #f5f6f8; }
.verdict.promoted { border-color: #1b7f4b; } .verdict.champion_kept { border-color: #a86a00; }
.verdict strong { font-size: 1.1rem; } .quiet { color: #5b6472; }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #e2e5ea; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr.best { background: #e9f5ee; font-weight: 600; } tr.failed { color: #b3261e; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #5b6472; }
"""


def page(report: Mapping[str, Any]) -> str:
    """Return the page of a report, as `report.json` holds it."""
    title = f"{report['pipeline']}: {report['stage']}"
    outcome = str(report["outcome"])
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">Run {escape(str(report["run"]))}, decided by {_rule(report)}</p>',
        f'<div class="verdict {escape(outcome)}"><strong id="outcome">'
        f"{escape(_WORDS.get(outcome, outcome))}</strong><br>{escape(report['explanation'])}</div>",
        *_champion(report),
        *_measured(report),
        *_slices(report),
        *_table(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _rule(report: Mapping[str, Any]) -> str:
    words = "largest" if report["direction"] == "max" else "smallest"
    parts = [f"the {words} {report['metric']}"]
    threshold = report.get("threshold")
    if threshold is not None:
        least = "at least" if report["direction"] == "max" else "at most"
        parts.append(f"{least} {_figure(threshold)}")
    for name, rule in [*report["metrics"].items(), *report["slices"].items()]:
        every = "every " if name in report["slices"] else ""
        if rule.get("minimum") is not None:
            parts.append(f"{every}{name} at least {_figure(rule['minimum'])}")
        if rule.get("maximum") is not None:
            parts.append(f"{every}{name} at most {_figure(rule['maximum'])}")
    if report.get("failures_allowed"):
        parts.append(f"{report['failures_allowed']} evaluations may fail")
    return escape(", ".join(parts))


def _best(report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((row for row in report["evaluations"] if row["name"] == report["best"]), None)


def _champion(report: Mapping[str, Any]) -> Iterator[str]:
    champion, best = report.get("champion"), _best(report)
    if champion is None:
        return
    yield "<h2>Champion and challenger</h2>"
    if champion["uri"] is None:
        yield f'<p id="champion">There is no champion yet: {escape(champion["source"])}.</p>'
        return
    metric = report["metric"]
    models = [("champion", champion["uri"], champion["metric"])]
    if best is not None:
        models.append((best["name"], best["uri"], best["metrics"].get(metric)))
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{_figure(value)}</td><td>{escape(uri)}</td></tr>'
        for name, uri, value in models
    )
    yield (
        f'<table id="champion"><tr><th></th><th class="n">{escape(metric)}</th><th>model</th></tr>'
        f"{rows}</table>"
    )
    if report["improvement"] is not None:
        yield bars(report["improvement"], report["interval"], champion["margin"])


def _measured(report: Mapping[str, Any]) -> Iterator[str]:
    metric = report["metric"]
    points: list[tuple[str, float, bool]] = [
        (row["name"], row["metrics"][metric], row["name"] == report["best"])
        for row in report["evaluations"]
        if row["metrics"].get(metric) is not None
    ]
    if points:
        champion = (report.get("champion") or {}).get("metric")
        yield f"<h2>{escape(metric)} by model</h2>"
        yield dots(points, {"threshold": report.get("threshold"), "champion": champion})


def _slices(report: Mapping[str, Any]) -> Iterator[str]:
    best = _best(report)
    if best is None:
        return
    for group, values in best["slices"].items():
        rule = report["slices"][group]
        yield f"<h2>{escape(report['metric'])} by {escape(group)}, of {escape(best['name'])}</h2>"
        rows = "".join(
            f'<tr{_failing(value, rule)}><td>{escape(name)}</td><td class="n">{_figure(value)}</td>'
            "</tr>"
            for name, value in values.items()
        )
        yield f'<table class="slices">{rows}</table>'


def _failing(value: float | None, rule: Mapping[str, Any]) -> str:
    least, most = rule.get("minimum"), rule.get("maximum")
    bounded = least is not None or most is not None
    outside = value is None or (least is not None and value < least)
    outside = outside or (most is not None and value is not None and value > most)
    return ' class="failed"' if bounded and outside else ""


def _table(report: Mapping[str, Any]) -> Iterator[str]:
    columns: Sequence[str] = list(report["metrics"])
    groups: Sequence[str] = list(report["slices"])
    heads = "".join(f'<th class="n">{escape(name)}</th>' for name in columns)
    heads += "".join(f'<th class="n">worst {escape(name)}</th>' for name in groups)
    yield "<h2>All evaluations</h2>"
    rows = "".join(_line(row, report, columns, groups) for row in report["evaluations"])
    yield (
        f'<div class="wide"><table id="evaluations"><tr><th>model</th>{heads}<th></th></tr>{rows}'
        "</table></div>"
    )


def _line(
    row: Mapping[str, Any], report: Mapping[str, Any], columns: Sequence[str], groups: Sequence[str]
) -> str:
    values = [row["metrics"].get(name) for name in columns]
    values += [_worst(row["slices"].get(name, {}), report, name) for name in groups]
    cells = "".join(f'<td class="n">{_figure(value)}</td>' for value in values)
    note = row.get("problem") or "; ".join(row.get("misses", ())[:3])
    kind = "best" if row["name"] == report["best"] else "failed" if "problem" in row else ""
    return f'<tr class="{kind}"><td>{escape(row["name"])}</td>{cells}<td>{escape(note)}</td></tr>'


def _worst(values: dict[str, float | None], report: Mapping[str, Any], group: str) -> float | None:
    """Return the number that is nearest to the bound, or beyond it."""
    finite = [value for value in values.values() if value is not None]
    if not finite or len(finite) < len(values):
        return None
    rule = report["slices"][group]
    high = rule.get("minimum") is not None or (
        rule.get("maximum") is None and report["direction"] == "max"
    )
    return min(finite) if high else max(finite)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
