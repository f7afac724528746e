"""A fixed part of the fault matrix; `make test-faults` runs all of it."""

from __future__ import annotations

import pytest

from tests.faults.cells import sample
from tests.faults.matrix import judged

pytestmark = [pytest.mark.slow]


def test_what_must_hold_under_every_kind_of_fault_holds_on_every_driver() -> None:
    results = judged(sample(), workers=1, tell=print)
    wrong = [line for r in results if not r.holds for line in (r.cell.name, *r.lines())]
    assert not wrong, "\n".join(wrong)
