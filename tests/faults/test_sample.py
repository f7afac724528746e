"""A fixed part of the fault matrix; `make test-faults` runs all of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from orchestration.local.airflow import LocalAirflow
from tests.faults.accounts import Zygote
from tests.faults.cell import Cell
from tests.faults.cells import further, sample
from tests.faults.matrix import judged

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(sample(), id="a few"),
        pytest.param(further(), id="further", marks=pytest.mark.thorough),
    ],
)
def test_what_must_hold_under_every_kind_of_fault_holds_on_every_driver(
    cells: Sequence[Cell], airflow: LocalAirflow, zygote: Zygote
) -> None:
    results = judged(cells, print, [airflow], zygote)
    wrong = [line for r in results if not r.holds for line in (r.cell.name, *r.lines())]
    assert not wrong, "\n".join(wrong)
