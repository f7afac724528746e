"""Write how good the planner's predictions are into docs/planning.md and benchmarks/README.md.

    python tools/planning/accuracy.py [--cross-validate] [--check]

Tables of scores on publications of which nobody knew (tests/data/planner/blind.csv), on those to
which nothing is fitted (unseen.csv), and on the fitted rows, each publication left out in turn; the
fifteen predictions that are furthest off, each with its likely reason (reasons.csv); and plans
beside what practitioners published of the same trainings. `--cross-validate` fits again without
each source, which takes minutes, and keeps the predictions in left_out.json. `--check` exits with 1
if a page differs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from math import log, nan
from pathlib import Path
from typing import Any

from orchestration.planning.calibration.evaluate import score_rows
from orchestration.planning.calibration.rows import complete
from orchestration.planning.calibration.scores import (
    Scored,
    Scores,
    averaged,
    grouped,
    headline,
    known,
    scores,
)
from orchestration.planning.cost.coefficients import facts
from orchestration.planning.model.recipes import EngineSettings
from orchestration.planning.search.amounts import duration
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.request import PlanRequest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data/planner"
LEFT_OUT = DATA / "left_out.json"
PAGE = ROOT / "docs/planning.md"
SUMMARY = ROOT / "benchmarks/README.md"
BEGIN = "<!-- tools/planning/accuracy.py writes what follows -->\n"
END = "<!-- until here -->\n"
WORST = 15
_FORMS = (
    ("rows", "rows", "{:d}"),
    ("mean", "time_mape", "{:.1%}"),
    ("median", "time_median", "{:.1%}"),
    ("within 20 %", "time_within_20", "{:.0%}"),
    ("in the interval", "interval_holds", "{:.0%}"),
    ("pairs right", "pairs_right", "{:.0%}"),
    ("regret", "regret_mean", "{:.1%}"),
    ("memory", "memory_mape", "{:.1%}"),
    ("in its interval", "memory_interval_holds", "{:.0%}"),
    ("out of memory seen", "out_of_memory_recall", "{:.0%}"),
    ("fits seen", "fit_recall", "{:.0%}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A training whose time on known machines somebody published."""

    name: str
    source: str
    request: dict[str, Any]
    published_h: float
    """Hours on the planned instances."""
    judgement: str


EXAMPLES = (
    Example(
        name="TinyLlama 1.1B, 22 B tokens, 8 x A100 40 GB",
        source="https://github.com/jzhang38/TinyLlama",
        request={
            "model": {"layers": 22, "hidden": 2048, "heads": 32, "kv_heads": 4, "ffn": 5632,
                      "vocabulary": 32000},
            "sequence": 2048, "batch": {"samples": 1024}, "data": {"tokens": 22e9},
            "kernels": "fused", "instances": {"types": ["ml.p4d.24xlarge"], "counts": [1]},
        },
        published_h=32,
        judgement="without recomputation, as theirs; they report 56 % MFU",
    ),
    Example(
        name="MPT-7B, 1 T tokens, 440 x A100 40 GB",
        source="https://www.databricks.com/blog/mpt-7b",
        request={
            "model": {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 16384, "gated": False,
                      "vocabulary": 50432, "tied_embeddings": True},
            "sequence": 2048, "batch": {"samples": 1760}, "data": {"tokens": 1e12},
            "instances": {"types": ["ml.p4d.24xlarge"], "counts": [55]},
        },
        published_h=9.5 * 24,
        judgement="FSDP, as theirs; a plan knows of no failures. Other rows of theirs are fitted",
    ),
    Example(
        name="Llama 2 7B, 2 T tokens, 184,320 hours of A100 80 GB",
        source="https://arxiv.org/abs/2307.09288",
        request={
            "model": {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocabulary": 32000},
            "sequence": 4096, "batch": {"samples": 1024}, "data": {"tokens": 2e12},
            "instances": {"types": ["ml.p4de.24xlarge"], "counts": [32]},
        },
        published_h=184_320 / 256,
        judgement="GPUs capped at 350 to 400 W, of a number that is not published (here 256)",
    ),
)  # fmt: skip


def main() -> int:
    """Write the tables, or compare them, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cross-validate", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.cross_validate:
        _cross_validate()
    stale = 0
    for path, fresh in written().items():
        if options.check and fresh != path.read_text(encoding="utf-8"):
            sys.stderr.write(f"{path} is stale; run python tools/planning/accuracy.py\n")
            stale = 1
        elif not options.check:
            path.write_text(fresh, encoding="utf-8")
    return stale


def written() -> dict[Path, str]:
    """Return both pages with fresh tables."""
    names = ("blind.csv", "unseen.csv", "benchmarks.csv")
    blind, unseen, seen = (_scored(DATA / name) for name in names)
    left_out = _left_out(seen)
    tables = _accuracy(blind, unseen, left_out, seen)
    return {
        PAGE: _filled(PAGE, [*tables, *_worst(unseen), *_examples()]),
        SUMMARY: _filled(SUMMARY, list(_summary(blind, unseen, left_out, seen))),
    }


def _filled(path: Path, parts: Sequence[str]) -> str:
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(parts) + "\n\n" + END + after


def _scored(path: Path) -> list[Scored]:
    with path.open(newline="", encoding="utf-8") as file:
        return score_rows(complete(row) for row in csv.DictReader(file))[0]


def _cross_validate() -> None:
    """Score predictions for each source with coefficients that were fitted without it."""
    fit: Any = import_module("fit")  # beside this file
    rows = fit.samples(DATA / "benchmarks.csv")
    apart: list[Scored] = fit.cross_validate(rows, fit.fit(rows), fit.source)
    kept = [
        f' "{row.id}": [{row.time_s:.6g}, {row.memory_gib:.6g}, {row.reading_gib:.6g}, '
        f"{int(row.fits)}]"
        for row in apart
    ]
    content = f'{{"of": "{_fitted()}", "rows": {{\n' + ",\n".join(kept) + "\n}}\n"
    LEFT_OUT.write_text(content, encoding="utf-8")


def _fitted() -> str:
    """Return a digest of the coefficients and of the rows that they are fitted to."""
    files = (ROOT / "orchestration/planning/cost/coefficients.csv", DATA / "benchmarks.csv")
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _left_out(seen: Iterable[Scored]) -> list[Scored]:
    """Return the fitted rows with the predictions of fits without their publications."""
    kept = json.loads(LEFT_OUT.read_text(encoding="utf-8"))
    if kept["of"] != _fitted():
        raise SystemExit(f"{LEFT_OUT.name} is of other coefficients; run with --cross-validate")
    return [_predicted_apart(row, *kept["rows"][row.id]) for row in seen]


def _predicted_apart(
    row: Scored, time_s: float, memory_gib: float, reading_gib: float, fits: int
) -> Scored:
    ratio = time_s / row.time_s
    return replace(
        row,
        time_s=time_s,
        low_s=row.low_s * ratio,
        high_s=row.high_s * ratio,
        memory_gib=memory_gib,
        reading_gib=reading_gib,
        fits=bool(fits),
    )


def _by_regime(rows: Sequence[Scored]) -> dict[str, Scores]:
    regimes = grouped(rows, lambda row: row.regime + (", noisy" if row.noisy else ""))
    return {"dense, not noisy": scores(headline(rows)), **regimes}


def _accuracy(
    blind: Sequence[Scored],
    unseen: Sequence[Scored],
    left_out: Sequence[Scored],
    seen: Sequence[Scored],
) -> Iterator[str]:
    yield "\n### Publications of which nobody knew when the formulas were written\n"
    yield from _apart(blind)
    yield "\n### Publications to which nothing is fitted\n"
    yield from _apart(unseen)
    yield "\n### The rows of the fit, each publication left out in turn\n"
    yield from _apart(left_out)
    yield _line("dense, not noisy; nothing left out", scores(headline(seen)))
    yield _counted()


def _counted() -> str:
    """Return how much there is to choose in the formulas."""
    names = facts()
    widths = sum(name.startswith("interval") for name in names)
    switches = len(EngineSettings.__annotations__)
    return (
        f"\nThe formulas have {len(names) - widths} coefficients, each with a prior, {widths} "
        f"widths of intervals, and {switches} switches that an engine sets, each by its source."
    )


def _apart(rows: Sequence[Scored]) -> Iterator[str]:
    yield from _head("", *(name for name, _, _ in _FORMS))
    for name, values in _by_regime(rows).items():
        yield _line(name, values)
    sources = grouped(rows, lambda row: row.source)
    yield _line("each publication alike", averaged(list(sources.values())))
    for name, values in sources.items():
        yield _line(f"`{name}`", values)


def _line(name: str, values: Scores) -> str:
    cells = (
        form.format(value) if known(value := getattr(values, field)) else "-"
        for _, field, form in _FORMS
    )
    return _row([name, *cells])


def _summary(
    blind: Sequence[Scored],
    unseen: Sequence[Scored],
    left_out: Sequence[Scored],
    seen: Sequence[Scored],
) -> Iterator[str]:
    """Return the scores of dense rows, and the mean errors of the others, a column a table."""
    tables = [_by_regime(rows) for rows in (seen, left_out, unseen, blind)]
    yield from _head("", "in sample", "each source left out", "unseen", "blind")
    for title, field, form in (*_FORMS, ("largest regret", "regret_max", "{:.0%}")):
        values = (getattr(table["dense, not noisy"], field) for table in tables)
        yield _row([title, *(form.format(each) if known(each) else "-" for each in values)])
    for regime in ("bits", "experts", "offload", "neuron"):
        errors = (table[regime].time_mape if regime in table else nan for table in tables)
        yield _row([f"mean of {regime}", *(f"{e:.1%}" if known(e) else "-" for e in errors)])


def _worst(rows: Iterable[Scored]) -> Iterator[str]:
    yield f"\n### The {WORST} step times that are furthest off, nothing fitted to them\n"
    yield from _head(
        "row", "model", "devices", "sequence", "measured", "predicted", "likely reason"
    )
    reasons = _reasons()
    for row in worst(rows):
        yield _row([
            f"`{row.id}`",
            row.model,
            f"{row.setting.machine.devices} x {row.accelerator}",
            f"{row.sequence:,}",
            duration(row.measured_time_s or 0),
            duration(row.time_s),
            reasons[row.id],
        ])  # fmt: skip


def worst(rows: Iterable[Scored]) -> list[Scored]:
    """Return the rows whose times are furthest off, by ratio."""
    timed = [row for row in rows if row.measured_time_s]
    return sorted(timed, key=_off, reverse=True)[:WORST]


def _off(row: Scored) -> float:
    return abs(log(row.time_s / (row.measured_time_s or row.time_s)))


def _reasons() -> dict[str, str]:
    """Return the reasons by row; a missing one is an error, since the worst must be explained."""
    with (DATA / "reasons.csv").open(newline="", encoding="utf-8") as file:
        return {row["id"]: row["reason"] for row in csv.DictReader(file)}


def _examples() -> Iterator[str]:
    yield "\n### Plans beside what practitioners published of the same trainings\n"
    yield from _head("training", "published", "planned", "off", "layout, MFU", "judgement")
    for example in EXAMPLES:
        request = PlanRequest.model_validate(example.request)
        plan = find_plans(request.task(), request.space(), request.goal()).chosen
        if plan is None:
            raise SystemExit(f"{example.name}: no plan")
        hours = plan.time_s.times(1 / 3600)
        yield _row([
            f"[{example.name}]({example.source})",
            f"{example.published_h:,.0f} h",
            f"{hours.expected:,.0f} h ({hours.low:,.0f} to {hours.high:,.0f})",
            f"{hours.expected / example.published_h - 1:+.0%}",
            f"{plan.layout}, {plan.mfu:.0%}",
            example.judgement,
        ])  # fmt: skip


def _head(*names: str) -> list[str]:
    return [_row(names), _row(["---"] * len(names))]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    raise SystemExit(main())
