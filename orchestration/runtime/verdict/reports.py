"""Reports of evaluations, read by one stated rule."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

REPORT = "evaluation.json"
EXAMPLES = "examples.jsonl"
VALUE = "value"
"""The field of a metric in the reports that SageMaker's model quality monitor writes."""

Scores = Dict[str, float]


class NotUsable(Exception):
    """A report that no number can be taken from, with the reason for people."""


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: its numbers, or the reason why there are none."""

    name: str
    uri: str
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """By the users' names; `None`: NaN or infinite."""
    slices: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """By group, then by slice."""
    problem: str = ""
    """The reason why it failed; empty if it did not."""
    examples: Path | None = None
    """The file with the scores of single examples, if it wrote one."""


def read(folder: Path, name: str, uri: str, request: Mapping[str, Any]) -> Evaluation:
    """Read the report of one evaluation; a failed one has a problem, and no numbers."""
    try:
        report = _document(folder / REPORT)
        metrics = {
            metric: _number(report, rule["path"]) for metric, rule in request["metrics"].items()
        }
        slices = {
            group: _group(report, rule["path"], request["metric"])
            for group, rule in request.get("slices", {}).items()
        }
    except NotUsable as problem:
        # What training recorded lies here as a report does; people know it by its own name.
        words = str(problem).replace(REPORT, request.get("file", REPORT))
        return Evaluation(name, uri, problem=words)
    examples = folder / EXAMPLES
    return Evaluation(name, uri, metrics, slices, examples=examples if examples.is_file() else None)


def scores(path: Path, metric: str) -> Scores:
    """Read the scores of single examples: lines such as `{"id": "7", "accuracy": 1}`."""
    found: Scores = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, score = str(row["id"]), row[metric]
        except (ValueError, KeyError, TypeError) as error:
            raise NotUsable(f"line {number} of {EXAMPLES} has no id or no {metric}") from error
        if not _is_number(score) or not math.isfinite(score):
            raise NotUsable(f"line {number} of {EXAMPLES}: {metric} is not a finite number")
        if name in found:
            raise NotUsable(f"line {number} of {EXAMPLES} repeats the id {name}")
        found[name] = float(score)
    return found


def _document(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise NotUsable(f"it wrote no {REPORT}")
    try:
        document = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise NotUsable(f"{REPORT} is no JSON in UTF-8") from error
    if not isinstance(document, dict):
        raise NotUsable(f"{REPORT} is no JSON object")
    return document


def _at(document: Any, path: Sequence[Any]) -> Any:
    value = document
    for step in path:
        try:
            value = _first(value, step) if isinstance(step, dict) else value[step]
        except (KeyError, IndexError, TypeError) as error:
            raise NotUsable(f"{REPORT} has no {_written(path)}") from error
    return value


def _first(value: Any, wanted: Mapping[str, Any]) -> Any:
    """Return the first object of a list whose field has a value; an error where there is none."""
    if not isinstance(value, list):
        raise TypeError
    own, name = wanted["value"], wanted["field"]
    found = (
        each
        for each in value
        if isinstance(each, dict)
        and name in each
        # Python takes true for 1.
        and isinstance(each[name], bool) == isinstance(own, bool)
        and each[name] == own
    )
    try:
        return next(found)
    except StopIteration:
        raise KeyError(name) from None


def _written(path: Sequence[Any]) -> str:
    parts = (
        f"[?{step['field']}==`{json.dumps(step['value'])}`] | [0]"
        if isinstance(step, dict)
        else str(step)
        for step in path
    )
    return ".".join(parts).replace(".[?", "[?")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finite(value: Any, place: str) -> float | None:
    if isinstance(value, dict) and VALUE in value:
        value = value[VALUE]
    if not _is_number(value):
        raise NotUsable(f"{place} of {REPORT} is not a number")
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _number(document: Any, path: Sequence[Any]) -> float | None:
    return _finite(_at(document, path), _written(path))


def _group(document: Any, path: Sequence[Any], metric: str) -> Mapping[str, float | None]:
    group, place = _at(document, path), _written(path)
    if not isinstance(group, dict) or not group:
        raise NotUsable(f"{place} of {REPORT} has no slices")
    return {
        str(name): _finite(_of_slice(value, metric), f"{place}.{name}")
        for name, value in group.items()
    }


def _of_slice(value: Any, metric: str) -> Any:
    """Return a slice's number: itself, or its field with the name of the deciding metric."""
    return value[metric] if isinstance(value, dict) and metric in value else value
