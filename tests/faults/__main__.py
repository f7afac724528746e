"""The whole matrix: `python -m tests.faults [--only TEXT] [--table FILE]`; `make test-faults`."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from pathlib import Path

from tests.faults.cells import cells
from tests.faults.matrix import judged
from tests.faults.table import DRIVERS, Result, table


def main() -> int:
    """Run the cells, print each, write the table; return 1 where something does not hold."""
    options = _parser().parse_args()
    chosen = [cell for cell in cells() if options.only in cell.name]
    began = time.monotonic()
    results = judged(chosen, options.workers, _tell)
    text = table(results, f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}")
    if options.table:
        Path(options.table).write_text(text)
    else:
        sys.stdout.write(text)
    wrong = [result.cell.name for result in results if not result.holds]
    sys.stdout.write(
        f"\n{len(results)} cells in {time.monotonic() - began:.0f} s; "
        f"{len(wrong)} neither hold nor are excused\n"
    )
    return 1 if wrong else 0


def _tell(result: Result) -> None:
    verdicts = ", ".join(f"{on} {result.verdict(on)}" for on in DRIVERS)
    sys.stdout.write("\n".join([f"{result.cell.name}: {verdicts}", *result.lines()]) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.faults", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the cells to run")
    parser.add_argument("--table", help="the file for the table; by default it is printed")
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 2) + 1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
