"""Scores, on rows made up."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from orchestration.planning.calibration.rows import Row, complete
from orchestration.planning.calibration.scores import Scored, scores
from tests.planning.calibration.example_rows import FILE


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return [complete(row) for row in csv.DictReader(file)]


def scored(time_s: float, measured_s: float | None, **changes: object) -> Scored:
    usual: dict[str, object] = {
        "id": str(time_s), "source": "s", "model": "m", "accelerator": "a100-80",
        "regime": "data", "noisy": False, "setting": time_s, "sequence": 2048,
        "chip_tokens": 1.0, "low_s": time_s / 1.1, "high_s": time_s * 1.1, "memory_gib": 10.0,
        "reading_gib": 10.0, "measured_memory_gib": None, "memory_margin": 1.1,
        "fits": True, "out_of_memory": False,
    }  # fmt: skip
    return Scored(time_s=time_s, measured_time_s=measured_s, **(usual | changes))  # type: ignore[arg-type]  # fields by name


def test_errors_are_relative_to_what_was_measured() -> None:
    results = scores([scored(1.1, 1.0), scored(0.7, 1.0, model="n"), scored(9.0, None)])
    assert results.time_mape == pytest.approx(0.2)
    assert results.time_within_20 == 0.5
    assert (results.rows, results.timed) == (3, 2)


def test_intervals_are_scored_by_what_they_hold() -> None:
    assert scores([scored(1.0, 1.05), scored(2.0, 3.0)]).interval_holds == 0.5


def test_pairs_count_where_times_differ_by_two_percent() -> None:
    right = [scored(1.0, 1.0), scored(2.0, 1.5), scored(3.0, 1.51)]
    assert (scores(right).pairs, scores(right).pairs_right) == (2, 1.0)
    wrong = [scored(1.0, 1.5), scored(2.0, 1.0)]
    assert scores(wrong).pairs_right == 0.0


def test_pairs_compare_time_per_token() -> None:
    rows = [scored(1.0, 1.0), scored(1.5, 1.5, chip_tokens=2.0)]
    assert (scores(rows).pairs, scores(rows).pairs_right) == (1, 1.0)


def test_pairs_are_of_one_model_and_accelerator() -> None:
    first = scored(1.0, 1.0)
    others = [
        scored(2.0, 3.0, model="n"),
        scored(2.0, 3.0, accelerator="h100"),
        scored(2.0, 3.0, source="t"),
        scored(2.0, 3.0, setting=1.0),
    ]
    assert all(scores([first, other]).pairs == 0 for other in others)


def test_regret_is_what_the_choice_costs() -> None:
    rows = [scored(1.0, 1.2), scored(2.0, 1.0)]
    assert scores(rows).regret_mean == pytest.approx(0.2)
    assert scores([rows[0], replace(rows[1], time_s=0.5)]).regret_mean == 0.0


def test_regret_is_of_what_fits_over_the_best_of_all() -> None:
    rows = [scored(1.0, 3.0, fits=False), scored(2.0, 1.5), scored(3.0, 1.0)]
    assert scores(rows).regret_mean == pytest.approx(0.5)
    assert scores([replace(rows[0], measured_time_s=0.5), *rows[1:]]).regret_mean == 2.0


def test_recall_counts_failures_and_successes_apart() -> None:
    rows = [
        scored(1.0, None, out_of_memory=True, fits=False),
        scored(1.0, None, out_of_memory=True, fits=True),
        scored(1.0, None, fits=False),
        scored(1.0, None, out_of_memory=None, fits=False),
    ]
    results = scores(rows)
    assert (results.out_of_memory_recall, results.fit_recall) == (0.5, 0.0)
