"""The cells of the matrix: what goes wrong, and whether the run gets over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orchestration.local import Fault
from tests.faults.calls import CALLS, FOREVER, LAST_CALLS, Call
from tests.faults.cell import CONCLUDED, KILLED, KILLED_BEFORE, LONG_S, SCRIPT, Cell
from tests.faults.flagship import ENDPOINT, FIRST, NAME
from tests.faults.small import small_cells
from tests.faults.stand_ins import STOPPED

_NO_CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."
JOBS = {
    "create file system": ("fs-", "CreateFileSystem"),
    "import": ("IMPORT", "CreateDataRepositoryTask"),
    "train": (f"{NAME}-train", "CreateTrainingJob"),
    "export": ("EXPORT", "CreateDataRepositoryTask"),
    "evaluate": (f"{NAME}-evaluate", "CreateProcessingJob"),
    "update endpoint": (ENDPOINT, "CreateEndpoint"),
    "create endpoint": (ENDPOINT, "CreateEndpoint"),
}
"""What runs long, by the call that starts it: a part of its name, and the operation."""
_OPTIONAL = ("mark", "list tasks")
"""Calls that a run does without: the mark of a file system whose export then succeeds, and the look
for tasks that hold up its deletion."""


def cells() -> tuple[Cell, ...]:
    """Return all cells, those of a call one after the other."""
    during = (cell for call in CALLS for cell in (*_of_call(call), *_of_job(call)))
    last = (cell for call in LAST_CALLS for cell in _of_last(call))
    return (*during, *last, *small_cells())


def _of_call(call: Call) -> Iterator[Cell]:
    served = not call.fresh

    def cell(kind: str, *faults: Fault, survives: bool = False) -> Cell:
        return Cell(call.name, kind, faults, survives, served)

    yield cell("throttled twice", call.throttled(2), survives=True)
    if call.name.startswith("poll "):
        yield cell("throttled for long", call.throttled(60), survives=True)
    else:
        yield cell("throttled throughout", call.throttled(FOREVER), survives=call.name in _OPTIONAL)
    yield cell("500 twice", call.failed(2), survives=True)
    yield cell("denied", call.denied(), survives=call.name in _OPTIONAL)
    yield cell("lost response", call.lost(), survives=True)
    if call.exists:
        code, message = call.exists
        fault = call.answered(code, message, after_effect=True)
        yield cell("exists already", fault, survives=True)
    if call.quota:
        yield cell("quota", call.answered(*call.quota, times=100_000))
    yield Cell(call.name, KILLED, (), True, served, call.moment())


def _of_last(call: Call) -> Iterator[Cell]:
    """Yield the cells of a call after the end, which may fail a run only where that succeeded."""
    by_name = {each.name: each for each in CALLS}
    before = by_name["invoke endpoint"]
    faults: tuple[Fault, ...] = ()
    error = ""
    if call.name == "alarm":
        before = by_name["create file system"]
        assert before.quota is not None
        error = before.quota[0]
        faults = (before.answered(*before.quota, times=FOREVER),)
    moments = {KILLED_BEFORE: before.moment()}
    for cell in (*_of_call(call), Cell(call.name, KILLED_BEFORE, (), True)):
        yield replace(
            cell,
            faults=(*faults, *cell.faults),
            survives=cell.survives and not error,
            arrives=cell.survives,
            moment=moments.get(cell.kind, cell.moment),
            of=CONCLUDED,
            error=error,
        )


def _of_job(call: Call) -> Iterator[Cell]:
    if call.name not in JOBS:
        return
    name, operation = JOBS[call.name]
    served = not call.fresh

    def cell(kind: str, *faults: Fault, survives: bool = False) -> Cell:
        return Cell(call.name, kind, faults, survives, served)

    yield cell("job fails", Fault.job(name, reason=SCRIPT, operation=operation))
    moment = call.moment()
    if operation == "CreateDataRepositoryTask":
        slow = replace(Fault.job(name, operation=operation), delay_s=LONG_S)
        yield Cell(call.name, "stopped by someone", (slow,), False, served, moment, "cancel a task")
    if call.name == "train":
        yield Cell(call.name, "data deleted", (), False, served, moment, "delete all data")
    if operation in ("CreateTrainingJob", "CreateProcessingJob"):
        yield cell("stopped by someone", Fault.job(name, operation=STOPPED))
    if operation in ("CreateProcessingJob", "CreateEndpoint"):
        yield cell("capacity", Fault.job(name, reason=_NO_CAPACITY, operation=operation))
    if operation == "CreateTrainingJob":
        spot = Fault.interruption(name)
        yield cell("capacity, first", Fault.capacity(instance_type=FIRST), survives=True)
        yield cell("capacity", Fault.capacity(name, times=100_000))
        yield cell("quota, first", Fault.quota(FIRST), survives=True)
        yield cell("quota", Fault.quota(FIRST), Fault.quota("ml.c5.2xlarge"))
        yield cell("spot interruption", spot, survives=True)
        yield cell("spot interruption, for good", spot, spot)


def sample() -> tuple[Cell, ...]:
    """Return some cells that have each service among them, and most kinds of faults.

    The others are injected on every driver in `tests/conformance/`: throttling without an end in
    `test_batch_copies.py`, a job that fails in `test_reruns.py`, one without capacity in
    `test_faults.py`. Faults that a run gets over are in one cell, each at another call.
    """
    by_name = {cell.name: cell for cell in cells()}
    overcome = (
        "list data: 500 twice",
        "train: quota, first",
        "train: lost response",
        "train: spot interruption",
        "create model: exists already",
        "invoke endpoint: throttled twice",
    )
    faults = [fault for name in overcome for fault in by_name[name].faults]
    others = (
        "create file system: denied",
        "train: stopped by someone",
        "delete file system: killed right after",
        "alarm: denied",
    )
    together = Cell("all of it", ", ".join(overcome), tuple(faults), survives=True)
    return (together, *(by_name[name] for name in others))


def further() -> tuple[Cell, ...]:
    """Return some more cells, of the kinds of faults that the sample lacks."""
    names = (
        "create file system: throttled throughout",
        "create file system: job fails",
        "train: capacity",
    )
    return tuple(cell for cell in cells() if cell.name in names)
