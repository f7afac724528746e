"""The page of a run: stages, durations, metrics, checkpoints, requests and logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from orchestration.explanations import explained
from orchestration.local.pages.curves import curves, drawn
from orchestration.local.pages.page_style import STYLE
from orchestration.pipeline.showing.drawing import boxes, svg
from orchestration.runtime.verdict.drawing import dots

if TYPE_CHECKING:
    from orchestration.local.account.records import RecordedCall
    from orchestration.local.run.report import RunReport, StageReport
    from orchestration.pipeline import Pipeline

_LOG_LETTERS: Final = 60_000
"""The end of each log that is shown."""
_ALL_LOGS: Final = 600_000
_REQUEST_LETTERS: Final = 8_000
_MOST_REQUESTS: Final = 40
"""Requests whose content is shown, of those that create something."""
_MOST_CALLS: Final = 400


def page(report: RunReport, pipeline: Pipeline, logs: Mapping[str, str]) -> str:
    """Return a run as one HTML document, without scripts; ``logs`` are those of its jobs."""
    title = f"{report.pipeline}: {report.state}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">Run {escape(report.run_id)} on {escape(report.on)}, '
        f"{report.started:%Y-%m-%d %H:%M} UTC, {report.duration_s:.1f} s, on an embedded AWS</p>",
        *_failure(report),
        _graph(report, pipeline),
        *_timeline(report),
        *_metrics(report, logs),
        *(part for stage in report.stages for part in _compared(report, stage)),
        *_requests(report.calls),
        *_logs(logs),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _failure(report: RunReport) -> Iterator[str]:
    if report.state != "failed":
        return
    known = explained(str(report.error))
    cure = "" if known is None else f"<p>{escape(known.happened)} {escape(known.cure)}</p>"
    yield (
        f'<div class="failure"><b>{escape(str(report.error))}</b>'
        f"<pre>{escape(str(report.cause))}</pre>{cure}</div>"
    )
    for stage in report.stages:
        if stage.log:
            yield f"<p>{escape(stage.name)}:</p><pre>{escape(chr(10).join(stage.log))}</pre>"


def _graph(report: RunReport, pipeline: Pipeline) -> str:
    notes = {stage.name: _ended(stage) for stage in report.stages}
    drawn = boxes(pipeline.every_stage, notes, {stage.name: stage.state for stage in report.stages})
    return f'<div class="graph">{svg(drawn, f"Stages of {report.pipeline}")}</div>'


def _ended(stage: StageReport) -> str:
    seconds = "" if stage.duration_s is None else f", {stage.duration_s:.1f} s"
    return f"{stage.state}{seconds}"


def _timeline(report: RunReport) -> Iterator[str]:
    whole = report.duration_s or 1.0
    rows = []
    for stage in report.stages:
        if stage.started is None or stage.ended is None:
            continue
        left = max(0.0, (stage.started - report.started).total_seconds() / whole * 100)
        width = min(
            100 - left, max(0.5, (stage.ended - stage.started).total_seconds() / whole * 100)
        )
        rows.append(
            f'<div class="row"><span>{escape(stage.name)}</span><div class="track">'
            f'<i class="{escape(stage.state)}" style="margin-left:{left:.2f}%;width:{width:.2f}%">'
            f"</i></div><b>{stage.duration_s:.1f} s</b></div>"
        )
    if rows:
        yield "<h2>Durations</h2>"
        yield f'<div class="timeline">{"".join(rows)}</div>'


def _metrics(report: RunReport, logs: Mapping[str, str]) -> Iterator[str]:
    figures = "".join(map(drawn, curves(report, logs)))
    rows = [
        (stage.name, name, f"{value:.6g}")
        for stage in report.stages
        for name, value in stage.metrics.items()
    ]
    if figures or rows:
        yield "<h2>Metrics</h2>"
    if figures:
        yield f'<div class="curves">{figures}</div>'
    if rows:
        yield _table(("stage", "metric", "last value"), rows)


def _compared(report: RunReport, stage: StageReport) -> Iterator[str]:
    """Yield the checkpoints that an evaluation compared, with the best one marked."""
    shown: Any = (report.outputs or {}).get(stage.name)
    rows = shown.get("results") if isinstance(shown, Mapping) else None
    if not isinstance(rows, list) or len(rows) < 2 or not all(isinstance(r, dict) for r in rows):
        return
    best, columns = shown.get("best_checkpoint"), [name for name in rows[0] if name != "checkpoint"]
    named = [(str(row.get("checkpoint", "")).rstrip("/").rpartition("/")[2], row) for row in rows]
    points = [
        (name, float(row["metric"]), row.get("checkpoint") == best)
        for name, row in named
        if isinstance(row.get("metric"), int | float)
    ]
    yield f"<h2>Checkpoints, by {escape(stage.name)}</h2>"
    if points:
        yield f'<div class="graph">{dots(points, {})}</div>'
    lines = [
        (
            name,
            *(_figure(row.get(column)) for column in columns),
            "best" * (row.get("checkpoint") == best),
        )
        for name, row in named
    ]
    yield _table(("checkpoint", *columns, ""), lines)


def _figure(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _requests(calls: Sequence[RecordedCall]) -> Iterator[str]:
    """Yield the calls in order, equal ones that follow each other as one row."""
    rows = []
    for (service, operation, outcome), group in groupby(calls, _outcome):
        many = len(list(group))
        rows.append((f"{service}:{operation}", str(many) if many > 1 else "", outcome))
    yield f"<h2>Requests sent: {len(calls)}</h2>"
    table = _table(("call", "times", "answer"), rows[:_MOST_CALLS])
    yield f"<details><summary>All in order</summary>{table}</details>"
    made = [call for call in calls if call.operation.startswith("Create")][:_MOST_REQUESTS]
    for call in made:
        text = json.dumps(call.request, indent=2, ensure_ascii=False, default=str)
        yield (
            f"<details><summary>{escape(call.operation)} {escape(_named(call))}</summary>"
            f"<pre>{escape(_end(text, _REQUEST_LETTERS, first=True))}</pre></details>"
        )


def _outcome(call: RecordedCall) -> tuple[str, str, str]:
    return call.service, call.operation, call.error_code or str(call.status)


def _named(call: RecordedCall) -> str:
    names = (value for key, value in call.request.items() if key.endswith("Name"))
    return str(next(names, ""))


def _logs(logs: Mapping[str, str]) -> Iterator[str]:
    if logs:
        yield "<h2>Logs</h2>"
    left = _ALL_LOGS
    for name, text in logs.items():
        shown = _end(text, min(_LOG_LETTERS, left))
        left -= len(shown)
        if shown.strip():
            yield f"<details><summary>{escape(name)}</summary><pre>{escape(shown)}</pre></details>"


def _end(text: str, most: int, *, first: bool = False) -> str:
    """Return the end of a text (or its beginning), and say where something is left out."""
    if len(text) <= most:
        return text
    if first:
        return f"{text[:most]}\n… {len(text) - most:,} more letters"
    return f"{len(text) - most:,} letters before …\n{text[len(text) - most :]}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
