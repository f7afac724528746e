"""The whole matrix: `python -m tests.faults`, as `make test-faults` runs it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from orchestration.local.airflow import LocalAirflow
from tests.faults.accounts import Zygote
from tests.faults.cells import cells
from tests.faults.matrix import judged
from tests.faults.table import DRIVERS, Result, table

_HERE = Path(__file__).parent
_TABLE = "the file for the table"
_RESULTS = "the file for results, from which --go-on goes on"


def main() -> int:
    """Run the cells, print each, write the table; return 1 where something does not hold."""
    options = _parser().parse_args()
    kept = _kept(options.results) if options.go_on else {}
    chosen = [c for c in cells() if re.search(options.only, c.name) and c.name not in kept]
    began = time.monotonic()
    options.results.write_text("".join(f"{line}\n" for line in map(_line, kept.values())))
    with ExitStack() as stack:
        airflows = [stack.enter_context(LocalAirflow()) for _ in range(options.workers)]
        zygote = stack.enter_context(Zygote())
        for result in judged(chosen, partial(_tell, options.results), airflows, zygote):
            kept[result.cell.name] = result
    results = [kept[cell.name] for cell in cells() if cell.name in kept]
    today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    options.table.write_text(table(cells(), results, today))
    wrong = [result.cell.name for result in results if not result.holds]
    sys.stdout.write(
        f"\n{len(chosen)} cells in {time.monotonic() - began:.0f} s; of {len(results)}, "
        f"{len(wrong)} neither hold nor are excused\n"
    )
    return 1 if wrong else 0


def _kept(path: Path) -> dict[str, Result]:
    """Read the results of an earlier run, of which those that are wrong count no more."""
    by_name = {cell.name: cell for cell in cells()}
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else ())
    results = [Result(by_name[n], problems) for n, problems in lines if n in by_name]
    return {result.cell.name: result for result in results if result.holds}


def _line(result: Result) -> str:
    return json.dumps([result.cell.name, dict(result.problems)])


def _tell(path: Path, result: Result) -> None:
    with path.open("a") as file:
        file.write(f"{_line(result)}\n")
    verdicts = ", ".join(f"{on} {result.verdict(on)}" for on in DRIVERS)
    sys.stdout.write("\n".join([f"{result.cell.name}: {verdicts}", *result.lines()]) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.faults", description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression for the cells to run")
    parser.add_argument("--go-on", action="store_true", help="leave out what held the last time")
    parser.add_argument("--table", type=Path, default=_HERE / "table.md", help=_TABLE)
    parser.add_argument("--results", type=Path, default=_HERE / ".results.jsonl", help=_RESULTS)
    parser.add_argument("--workers", type=int, default=2 * (os.cpu_count() or 2))
    return parser


if __name__ == "__main__":
    sys.exit(main())
