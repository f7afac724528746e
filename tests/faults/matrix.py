"""Cells on every driver, and the verdicts."""

from __future__ import annotations

import queue
import re
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestration.backends.stepfunctions import compact, render
from orchestration.local.airflow import LocalAirflow
from tests.conformance.test_conformance import BACKENDS
from tests.faults.accounts import Zygote
from tests.faults.cell import CONCLUDED, Cell
from tests.faults.drivers import Drivers
from tests.faults.flagship import concluded, flagship
from tests.faults.laws import broken
from tests.faults.small import small
from tests.faults.table import Result


def judged(
    cells: Sequence[Cell],
    tell: Callable[[Result], None],
    airflows: Sequence[LocalAirflow],
    zygote: Zygote,
) -> list[Result]:
    """Run cells on every driver, one beside the other on each Airflow; say what each did wrong."""
    waiting: queue.SimpleQueue[Cell] = queue.SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    results: dict[str, Result] = {}
    all_pipelines = {"flagship": flagship(), CONCLUDED: concluded(), **small()}

    def work(airflow: LocalAirflow) -> None:
        with tempfile.TemporaryDirectory() as folder:
            drivers = {
                name: Drivers(zygote, airflow, Path(folder), pipeline)
                for name, pipeline in all_pipelines.items()
            }
            while True:
                try:
                    cell = waiting.get_nowait()
                except queue.Empty:
                    return
                result = results[cell.name] = _judged(cell, drivers[cell.of])
                tell(result)

    for name in {cell.of for cell in cells}:
        zygote.remember(compact(render(all_pipelines[name].lower())))
    threads = [threading.Thread(target=work, args=(airflow,)) for airflow in airflows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[cell.name] for cell in cells]


def _judged(cell: Cell, drivers: Drivers) -> Result:
    run_id = re.sub(r"\W+", "-", cell.name)[:60]
    try:
        endings = {on: drivers.run(on, run_id, cell) for on in BACKENDS}
    except Exception as error:  # the other cells are still worth running
        return Result(cell, {on: [f"the cell could not be run: {error!r}"] for on in BACKENDS})
    return Result(cell, broken(cell, endings))
