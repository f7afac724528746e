"""The matrix as a table that can be read, with what is excused and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.conformance.test_conformance import BACKENDS, Backend
from tests.faults.cell import Cell
from tests.faults.excuses import EXCUSES, excuse

Verdict = Literal["holds", "excused", "stale", "broken"]
_SIGNS: Mapping[Verdict, str] = {"holds": "✓", "excused": "e", "stale": "stale", "broken": "✗"}
_ABOUT = """\
A row is a call of the flagship pipeline, a column what happens at it or to the job that it starts;
the last four rows are calls of pipelines with one stage (`small.py`), whose jobs it does not start.
A field is for direct runs, Airflow and Step Functions in this order: ✓ holds, ✗ does not, a letter
is an excuse below, ? did not run. Jobs and models are stand-ins (`stand_ins.py`), and time is
scaled (`drivers.py`). What must hold is in `laws.py`.

A poll that is throttled throughout goes on until the time limit of what it waits for, which is not
scaled: an hour and more. Polls are throttled sixty times instead, which a run gets over.

*Killed right after* means that the call has taken effect and its response is lost with who asked.
Direct: the process gets SIGKILL, and another goes on with the run id. Airflow: its scheduler,
triggerer and worker get SIGKILL and start again over their database, which retries the task or
waits on. Both must succeed then. Step Functions: the execution is stopped, which is its end, and
its companion cleans up; so the ends are not compared.

*Killed right before* is the same at the call that ends the run: what follows its end has not begun.
The alarm follows a run that has failed, for want of quota for its file system, and the record every
run, here one that succeeds. A run that failed keeps its own error, whatever becomes of the two.

*Data deleted* means that somebody deletes the file system while the training job is created.
"""
DRIVERS: Sequence[Backend] = ("direct", "airflow", "step-functions")


@dataclass(frozen=True)
class Result:
    """A cell, and what each driver did wrong in it."""

    cell: Cell
    problems: Mapping[Backend, Sequence[str]]

    def verdict(self, on: Backend) -> Verdict:
        """Return whether the cell holds on a driver."""
        excused = excuse(self.cell.row, self.cell.kind, on) is not None
        if self.problems[on]:
            return "excused" if excused else "broken"
        return "stale" if excused else "holds"

    @property
    def holds(self) -> bool:
        """Whether every driver did what it must, or is excused."""
        return all(self.verdict(on) in ("holds", "excused") for on in BACKENDS)

    def lines(self) -> Iterator[str]:
        """Yield what each driver did wrong."""
        for on in DRIVERS:
            yield from (f"    {on}: {problem}" for problem in self.problems[on])


def table(cells: Sequence[Cell], results: Sequence[Result], date: str) -> str:
    """Return the table of all cells as Markdown, also of those without a result yet."""
    head = _head(len(cells), results, date)
    return "\n".join([*head, *_body(cells, results), *_excuses(), ""])


def _head(count: int, results: Sequence[Result], date: str) -> Iterator[str]:
    verdicts = [result.verdict(on) for result in results for on in DRIVERS]
    yield "# The fault matrix"
    yield ""
    yield f"`make test-faults`, {date}: {len(results)} of {count} cells on three drivers, of which"
    yield f"{verdicts.count('holds')} hold and {verdicts.count('excused')} are excused."
    yield ""
    yield _ABOUT


def _body(cells: Sequence[Cell], results: Sequence[Result]) -> Iterator[str]:
    kinds = list(dict.fromkeys(cell.kind for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    fields = {(cell.row, cell.kind): "?" for cell in cells}
    fields |= {(result.cell.row, result.cell.kind): _field(result) for result in results}
    yield f"| call | {' | '.join(kinds)} |"
    yield f"|---|{'---|' * len(kinds)}"
    for row in rows:
        yield f"| {row} | {' | '.join(fields.get((row, kind), '') for kind in kinds)} |"
    yield ""


def _field(result: Result) -> str:
    return " ".join(_sign(result, on) for on in DRIVERS)


def _sign(result: Result, on: Backend) -> str:
    verdict = result.verdict(on)
    if verdict != "excused":
        return _SIGNS[verdict]
    number = next(
        number
        for number, each in enumerate(EXCUSES)
        if each.covers(result.cell.row, result.cell.kind, on)
    )
    return letter(number)


def letter(number: int) -> str:
    """Return the letter of an excuse."""
    return chr(ord("a") + number)


def _excuses() -> Iterator[str]:
    yield "## Excuses"
    yield ""
    for number, each in enumerate(EXCUSES):
        defect = "**A defect.** " if each.defect else ""
        yield f"- {letter(number)}: {defect}{each.reason}"
