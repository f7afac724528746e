"""The planner against our own readings on one H100, whose formulas they corrected."""

from __future__ import annotations

import csv

import pytest

from orchestration.planning.calibration.evaluate import score
from orchestration.planning.calibration.rows import Row, complete
from orchestration.planning.calibration.scores import Scored, scores
from tests.planning.calibration.example_rows import FILE
from tests.planning.calibration.fit_tool import load_fit

MEASURED = FILE.with_name("measured.csv")


def rows() -> list[Row]:
    with MEASURED.open(newline="", encoding="utf-8") as file:
        return [complete(row) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def scored() -> list[Scored]:
    return [score(row) for row in rows()]


def test_peaks_are_those_that_torch_counted(scored: list[Scored]) -> None:
    """Within 15 %, but for what no formula has.

    GPT-2's GELU is written as single operators, and BERT's loss in pure 16 bits has no cast.
    """
    far = {
        row.model
        for row in scored
        if row.measured_memory_gib and abs(row.reading_gib / row.measured_memory_gib - 1) > 0.15
    }
    assert far == {"gpt2-medium", "bert-base"}
    assert scores(scored).memory_mape < 0.035


def test_what_ran_out_of_memory_counts_as_too_large(scored: list[Scored]) -> None:
    """But for two whose free memory was in pieces: arrays of 16 GiB come and go."""
    assert scores(scored).fit_recall == 1
    missed = {row.id for row in scored if row.out_of_memory and row.fits}
    assert missed <= {"measured_h100-049", "measured_h100_later-040"}


def test_fit_refuses_our_own_readings() -> None:
    pytest.importorskip("scipy")
    fit = load_fit()
    with pytest.raises(SystemExit, match="measured_h100"):
        fit.fit(fit.samples(FILE)[:3] + fit.samples(MEASURED)[-1:])
