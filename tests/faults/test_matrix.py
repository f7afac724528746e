"""The matrix is whole: it has every call that the flagship makes, and no stale excuse."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from orchestration.local.airflow import LocalAirflow
from tests.conformance import normal
from tests.faults.accounts import Zygote
from tests.faults.calls import CALLS
from tests.faults.cell import Cell
from tests.faults.cells import cells, further, sample
from tests.faults.drivers import Drivers
from tests.faults.excuses import EXCUSES
from tests.faults.flagship import flagship
from tests.faults.table import letter

TABLE = Path(__file__).with_name("table.md")

KINDS = {
    "throttled twice",
    "throttled throughout",
    "500 twice",
    "denied",
    "lost response",
    "exists already",
    "job fails",
    "stopped by someone",
    "capacity",
    "quota",
    "spot interruption",
    "killed right after",
}
ELSEWHERE = {"throttled throughout", "job fails", "capacity"}
"""Kinds that the sample lacks: `tests/conformance/` injects them on every driver."""


def names(call: Any) -> list[str]:
    """The rows of a call."""
    asked = (call.service, call.operation, call.request)
    return [row.name for row in CALLS if row.moment().matches(*asked)]


@pytest.mark.slow
@pytest.mark.parametrize("served", [True, False], ids=["over an old model", "for the first time"])
def test_every_call_of_the_flagship_is_a_row(served: bool, tmp_path: Path, zygote: Zygote) -> None:
    drivers = Drivers(zygote, LocalAirflow(), tmp_path, flagship())
    ending = drivers.run("direct", "plain", Cell("none", "none", (), True, served))
    assert ending.state == "succeeded", ending.cause
    rows = {tuple(names(call)) for call in ending.calls if not normal.own(call)}
    others = {"create endpoint"} if served else {"look at scaling", "update endpoint"}
    assert rows == {(row.name,) for row in CALLS if row.name not in others}


def test_the_sample_has_every_service_and_with_what_is_further_every_kind_of_fault() -> None:
    text = " ".join(cell.name for cell in sample())
    assert {cell.kind for cell in cells()} >= KINDS
    assert {cell.kind for cell in further()} == ELSEWHERE
    assert {kind for kind in KINDS if kind not in text} == ELSEWHERE
    by_name = {row.name: row.service for row in CALLS}
    services = {service for row, service in by_name.items() if f"{row}: " in text}
    assert services == {"fsx", "s3", "sagemaker", "sagemaker-runtime"}


def test_no_two_cells_have_one_name() -> None:
    assert set(Counter(cell.name for cell in cells()).values()) == {1}


def test_every_excuse_is_of_cells_that_exist() -> None:
    places = {(cell.row, cell.kind) for cell in cells()}
    for excuse in EXCUSES:
        named = {(row, kind) for row in excuse.rows for kind in excuse.kinds}
        assert named & places, excuse.reason
        assert set(excuse.rows) <= {row for row, _ in places}
        assert set(excuse.kinds) <= {kind for _, kind in places}


def test_the_table_is_of_these_cells_and_excuses() -> None:
    text = TABLE.read_text()
    head, *rows = (
        [field.strip() for field in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    )
    places = {
        (row, kind) for row, *fields in rows for kind, f in zip(head[1:], fields, strict=True) if f
    }
    assert places == {(cell.row, cell.kind) for cell in cells()}
    signs = {sign for _, *fields in rows for field in fields for sign in field.split()}
    assert signs <= {"✓", *map(letter, range(len(EXCUSES)))}
    assert all(excuse.reason in text for excuse in EXCUSES)
