"""Publications kept apart: none is fitted, and each says where its figures are from."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from orchestration.planning.calibration.rows import Row, complete
from orchestration.planning.calibration.scores import headline, scores
from tests.planning.calibration.example_rows import BLIND, FILE, UNSEEN
from tests.planning.calibration.fit_tool import load_fit


def rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [complete(row) for row in csv.DictReader(file)]


def test_unseen_publications_are_in_no_table_that_is_fitted() -> None:
    for column in ("source_id", "source"):
        fitted, unseen, blind = ({row[column] for row in rows(f)} for f in (FILE, UNSEEN, BLIND))
        assert not fitted & unseen
        assert not blind & (fitted | unseen)


@pytest.mark.parametrize(("file", "publications"), [(UNSEEN, 5), (BLIND, 2)])
def test_every_unseen_row_has_an_address_and_a_date(file: Path, publications: int) -> None:
    table = rows(file)
    assert len({row["source_id"] for row in table}) >= publications
    assert all(row["source"].startswith("https://") for row in table)
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"]) for row in table)
    assert len({row["id"] for row in table}) == len(table)


def test_unseen_rows_measure_time_memory_and_what_does_not_fit() -> None:
    table = rows(UNSEEN)
    assert sum(bool(row["step_time_s"] or row["tokens_s_per_gpu"]) for row in table) > 300
    assert sum(bool(row["mem_gib_per_gpu"]) for row in table) > 50
    assert sum(row["oom"] == "1" for row in table) > 100


def test_fit_refuses_unseen_publications() -> None:
    pytest.importorskip("scipy")
    fit = load_fit()
    with pytest.raises(SystemExit, match="internevo"):
        fit.fit(fit.samples(FILE)[:3] + fit.samples(UNSEEN)[-200:])
    with pytest.raises(SystemExit, match="torchtune"):
        fit.fit(fit.samples(FILE)[:3] + fit.samples(BLIND)[-1:])


def test_no_values_of_coefficients_predict_the_unseen_rows_much_better() -> None:
    pytest.importorskip("scipy")
    best = scores(headline(load_fit().floor()))
    page = (Path(__file__).parents[3] / "docs/planning.md").read_text(encoding="utf-8")
    told = re.search(
        r"dense ones are ([\d.]+) % off\s+on average, ([\d.]+) % at the median, and (\d+) %", page
    )
    assert told
    found = [100 * best.time_mape, 100 * best.time_median, 100 * best.time_within_20]
    assert [float(each) for each in told.groups()] == pytest.approx(found, abs=0.6)
