"""Predict published measurements, and score the predictions.

::

    python -m orchestration.planning.evaluate FILE.csv [--json] [--predictions OUT.csv]

The columns are those of ``tests/data/planner/benchmarks.csv``; predictions ignore measured ones.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from orchestration.errors import OrchestrationError
from orchestration.planning.calibration.cells import measured
from orchestration.planning.calibration.rows import Row, complete, configuration, cores_per_chip
from orchestration.planning.calibration.scores import (
    Scored,
    Scores,
    averaged,
    grouped,
    headline,
    known,
    scores,
)
from orchestration.planning.calibration.spellings import flag
from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.prediction import Prediction, predict
from orchestration.planning.model.regimes import regime

_COLUMNS = (
    ("rows", "rows", "{:d}"),
    ("MAPE", "time_mape", "{:.1%}"),
    ("median", "time_median", "{:.1%}"),
    ("<20%", "time_within_20", "{:.0%}"),
    ("in 80%", "interval_holds", "{:.0%}"),
    ("pairs", "pairs", "{:d}"),
    ("right", "pairs_right", "{:.1%}"),
    ("regret", "regret_mean", "{:.1%}"),
    ("largest", "regret_max", "{:.1%}"),
    ("memory", "memory_mape", "{:.1%}"),
    ("in 80%", "memory_interval_holds", "{:.0%}"),
    ("OOM", "out_of_memory_recall", "{:.0%}"),
    ("fits", "fit_recall", "{:.1%}"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m orchestration.planning.evaluate",
        description="Predict the configurations of a table of measurements, and score them.",
    )
    parser.add_argument("file", type=Path, metavar="FILE.csv")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    parser.add_argument(
        "--predictions", type=Path, metavar="OUT.csv", help="write every prediction"
    )
    options = parser.parse_args(arguments)
    try:
        rows = _read(options.file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        parser.error(f"can't read {options.file}: {error}")
    scored, refused = score_rows(rows)
    if options.predictions:
        _write(options.predictions, scored, refused)
    if options.json:
        sys.stdout.write(json.dumps(report(scored, refused), indent=1) + "\n")
    else:
        sys.stdout.write(table(scored, refused))
    return 0


def _read(path: Path) -> list[Row]:
    """Return the rows of a file; the number of a row stands in for a missing id."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [complete(row) for row in csv.DictReader(file)]
    return [{**row, "id": row["id"] or f"row {number}"} for number, row in enumerate(rows, 1)]


def score_rows(
    rows: Iterable[Row], coefficients: Coefficients | None = None
) -> tuple[list[Scored], dict[str, str]]:
    """Return every row with its prediction, and the errors of rows without one, by id."""
    scored: list[Scored] = []
    refused: dict[str, str] = {}
    for row in rows:
        try:
            scored.append(score(row, coefficients))
        except OrchestrationError as error:
            refused[_unique(row["id"], refused)] = str(error)
        except ArithmeticError as error:  # from absurd sizes
            refused[_unique(row["id"], refused)] = f"its sizes make no sense: {error}"
    return scored, refused


def _unique(name: str, taken: Mapping[str, str]) -> str:
    """Number an id that a refused row already has: tables may use an id twice."""
    numbers = (0, *range(2, len(taken) + 3))
    names = (f"{name} ({number})" if number else name for number in numbers)
    return next(unused for unused in names if unused not in taken)


def score(row: Row, coefficients: Coefficients | None = None) -> Scored:
    """Return a row with its prediction.

    Raises:
        ConfigurationError: the row lacks facts that the prediction needs.
        ModelError: its model contradicts itself.
    """
    c = configuration(row)
    prediction = predict(c, coefficients)
    cores = cores_per_chip(row)
    reading = _positive(row["mem_gib_per_gpu"])
    return Scored(
        id=row["id"],
        source=row["source_id"],
        model=row["model"],
        accelerator=c.machine.accelerator,
        regime=regime(c),
        noisy=row["noise"].startswith("high"),
        setting=c,
        sequence=c.sequence,
        chip_tokens=c.tokens * cores / c.machine.devices,
        time_s=prediction.step_time_s,
        low_s=prediction.low_s,
        high_s=prediction.high_s,
        measured_time_s=_measured_time(row, c.tokens * cores / c.machine.devices),
        memory_gib=prediction.memory_gib,
        reading_gib=_reading(row, prediction),
        memory_margin=prediction.memory_high_gib / prediction.memory_gib,
        measured_memory_gib=reading if _means_need(row) else None,
        fits=prediction.fits,
        out_of_memory=flag(row["oom"]),
    )


def report(scored: Sequence[Scored], refused: Mapping[str, str]) -> dict[str, object]:
    """Return all scores as plain values; a score without rows is ``None``."""
    groups = {
        title: {name: _plain(values) for name, values in group.items()}
        for title, group in _groups(scored).items()
    }
    return {
        **groups,
        "rows": len(scored) + len(refused),
        "predicted": len(scored),
        "not_predicted": dict(refused),
    }


def table(scored: Sequence[Scored], refused: Mapping[str, str]) -> str:
    """Return all scores as a table for people."""
    lines = []
    for title, group in _groups(scored).items():
        lines.append(f"{title:<22}" + "".join(f"{head:>9}" for head, _, _ in _COLUMNS))
        for name, values in group.items():
            lines.append(f"  {name:<20}" + "".join(_cells(values)))
        lines.append("")
    lines.append(f"predicted {len(scored)} of {len(scored) + len(refused)} rows")
    lines += [f"not predicted: {row}: {reason}" for row, reason in refused.items()]
    return "\n".join(lines) + "\n"


def _groups(scored: Sequence[Scored]) -> dict[str, Mapping[str, Scores]]:
    goals = headline(scored)
    sources = grouped(scored, lambda row: row.source)
    return {
        "overall": {
            "all": scores(scored),
            "dense, not noisy": scores(goals),
            "each source alike": averaged(list(sources.values())),
        },
        "source": sources,
        "accelerator": grouped(scored, lambda row: row.accelerator),
        "regime": grouped(scored, lambda row: row.regime + (", noisy" if row.noisy else "")),
    }


def _cells(values: Scores) -> Iterable[str]:
    for _, name, form in _COLUMNS:
        value = getattr(values, name)
        yield f"{form.format(value) if known(value) else '-':>9}"


def _plain(values: Scores) -> dict[str, float | None]:
    return {name: value if known(value) else None for name, value in asdict(values).items()}


def _measured_time(row: Row, chip_tokens: float) -> float | None:
    if (step := _positive(row["step_time_s"])) is not None:
        return step
    rate = _positive(row["tokens_s_per_gpu"])
    return None if rate is None else chip_tokens / rate


def _positive(cell: str) -> float | None:
    """Return a measured value; ``None``: not a number above 0."""
    value = measured(cell)
    return value if value is not None and value > 0 else None


def _means_need(row: Row) -> bool:
    """Return whether a reading is the need: what an allocator reserves may fill the card."""
    return "reserved" not in row["mem_kind"]


def _reading(row: Row, prediction: Prediction) -> float:
    """Return the prediction for the kind of memory that was read."""
    memory = prediction.memory
    if row["mem_kind"].startswith("model"):
        return memory.states + memory.activations
    if "allocated" in row["mem_kind"]:
        return memory.allocated
    return prediction.memory_gib


def _write(path: Path, scored: Iterable[Scored], refused: Mapping[str, str]) -> None:
    columns = (
        "id", "regime", "step_time_s", "low_s", "high_s", "tokens_s_per_gpu", "mem_gib", "oom",
        "not_predicted",
    )  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for row in scored:
            writer.writerow({
                "id": row.id,
                "regime": row.regime,
                "step_time_s": f"{row.time_s:.6g}",
                "low_s": f"{row.low_s:.6g}",
                "high_s": f"{row.high_s:.6g}",
                "tokens_s_per_gpu": f"{row.chip_tokens / row.time_s:.6g}",
                "mem_gib": f"{row.memory_gib:.6g}",
                "oom": int(not row.fits),
            })  # fmt: skip
        for name, reason in refused.items():
            writer.writerow({"id": name, "not_predicted": reason})
