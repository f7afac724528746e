"""The job from its inputs to its outputs."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Mapping

from .page import page
from .reports import Evaluation, read
from .rules import PROMOTED, Verdict, decide, misses

REQUEST = "request.json"
CHAMPION = "champion"
MODEL = "model"
_LONGEST = 1000
"""Characters of the explanation that a run carries."""


def main(inputs: Path, outputs: Path) -> None:
    """Read the request and the reports below `inputs`; write the verdict to `outputs`."""
    request = json.loads((inputs / REQUEST).read_text("utf-8"))
    evaluations = _evaluations(inputs, request)
    champion = _champion(inputs, request)
    verdict = decide(evaluations, champion, request)
    report = _report(request, evaluations, champion, verdict)
    outputs.mkdir(parents=True, exist_ok=True)
    _write(outputs / "report.json", report)
    (outputs / "report.html").write_text(page(report), encoding="utf-8")
    _write(outputs / "verdict.json", _figures(request, champion, verdict))
    sys.stdout.write(f"{verdict.outcome}: {verdict.explanation}\n")


def _evaluations(inputs: Path, request: Mapping[str, Any]) -> list[Evaluation]:
    found = []
    if MODEL in request:
        return [read(inputs / MODEL, MODEL, request[MODEL], request)]
    if "models" in request:
        for each in request["models"]:
            name = each["training_job"]
            found.append(read(inputs / _folder(request, name), name, each["model"], request))
        return found
    for each in request["checkpoints"]:
        prefix = each["Prefix"]
        name, uri = prefix.rstrip("/").rpartition("/")[2], f"s3://{request['bucket']}/{prefix}"
        found.append(read(inputs / _folder(request, prefix), name, uri, request))
    return found


def _folder(request: Mapping[str, Any], element: str) -> str:
    """Return the folder of an evaluation: a hash of the run and the whole prefix, or the job."""
    return hashlib.sha256(f"{request['run']}/{element}".encode()).hexdigest()[:12]


def _champion(inputs: Path, request: Mapping[str, Any]) -> Evaluation | None:
    uri = request.get(CHAMPION, {}).get(MODEL)
    # It is judged by the deciding metric alone.
    rules = {**request, "metrics": {request["metric"]: request["metrics"][request["metric"]]}}
    rules["slices"] = {}
    return None if not uri else read(inputs / CHAMPION, CHAMPION, uri, rules)


def _row(evaluation: Evaluation, request: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": evaluation.name,
        "uri": evaluation.uri,
        "metrics": dict(evaluation.metrics),
        "slices": {group: dict(values) for group, values in evaluation.slices.items()},
    }
    if evaluation.problem:
        return {**row, "problem": evaluation.problem}
    return {**row, "misses": misses(evaluation, request)}


def _report(
    request: Mapping[str, Any],
    evaluations: list[Evaluation],
    champion: Evaluation | None,
    verdict: Verdict,
) -> dict[str, Any]:
    """Return everything that is known, for `report.json` and the page."""
    rules = ("pipeline", "stage", "run", "metric", "direction", "threshold", "failures_allowed")
    report: dict[str, Any] = {name: request[name] for name in rules if name in request}
    report["metrics"] = {
        name: {key: value for key, value in rule.items() if key != "path"}
        for name, rule in request["metrics"].items()
    }
    report["slices"] = request.get("slices", {})
    report["outcome"], report["explanation"] = verdict.outcome, verdict.explanation
    report["best"] = None if verdict.best is None else verdict.best.name
    report["evaluations"] = [_row(each, request) for each in evaluations]
    rule = {key: value for key, value in request.get(CHAMPION, {}).items() if key != MODEL}
    if champion is not None:
        report[CHAMPION] = {
            **rule,
            "uri": champion.uri,
            "metric": champion.metrics.get(request["metric"]),
            "problem": champion.problem,
        }
    elif rule:
        report[CHAMPION] = {**rule, "uri": None}
    report["improvement"] = verdict.improvement
    interval = verdict.interval
    report["interval"] = (
        None
        if interval is None
        else {"low": interval.low, "high": interval.high, "examples": interval.examples}
    )
    return report


def _figures(
    request: Mapping[str, Any], champion: Evaluation | None, verdict: Verdict
) -> dict[str, Any]:
    """Return what a run carries on: few figures, whatever was evaluated; none of them is null."""
    figures: dict[str, Any] = {
        "outcome": verdict.outcome,
        "explanation": verdict.explanation[:_LONGEST],
        "passed": verdict.outcome == PROMOTED,
    }
    best, interval = verdict.best, verdict.interval
    if best is not None:
        figures["best"], figures["best_name"] = best.uri, best.name
        figures["metrics"] = {k: v for k, v in best.metrics.items() if v is not None}
    if champion is not None:
        figures[CHAMPION] = champion.uri
        figures["champion_metric"] = champion.metrics.get(request["metric"])
    figures["improvement"] = verdict.improvement
    if interval is not None:
        figures["interval_low"], figures["interval_high"] = interval.low, interval.high
    return {name: value for name, value in figures.items() if value is not None}


def _write(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
