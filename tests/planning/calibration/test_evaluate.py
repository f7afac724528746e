"""Predictions of published measurements."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestration.planning.calibration.evaluate import main, score_rows
from orchestration.planning.calibration.rows import COLUMNS, Row, complete, configuration
from orchestration.planning.calibration.scores import headline, scores
from orchestration.planning.cost.prediction import measured
from tests.planning.calibration.example_rows import FILE, GOOD, UNSEEN

MEASURED = (
    "tflops_per_gpu", "tokens_s_per_gpu", "step_time_s", "mfu_pct", "hfu_pct", "mem_gib_per_gpu",
    "mem_kind", "oom", "noise",
)  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return [complete(row) for row in csv.DictReader(file)]


def test_every_row_is_predicted(rows: list[Row]) -> None:
    scored, refused = score_rows(rows)
    assert len(scored) == len(rows) > 0
    assert refused == {}


def test_goals_are_met_on_the_rows_at_hand(rows: list[Row]) -> None:
    """Leaving whole sources out is the harder test: see test_fit."""
    results = scores(headline(score_rows(rows)[0]))
    assert results.time_mape <= 0.06
    assert results.time_median <= 0.04
    assert results.time_within_20 >= 0.95
    assert results.pairs_right >= 0.82
    assert results.regret_mean <= 0.03
    assert results.memory_mape <= 0.08
    assert results.out_of_memory_recall >= 0.8
    assert results.fit_recall >= 0.95


@pytest.mark.parametrize("regime", ["bits", "experts", "offload", "neuron"])
def test_odd_regimes_are_within_fifteen_percent(rows: list[Row], regime: str) -> None:
    scored, _ = score_rows(rows)
    kept = [row for row in scored if row.regime == regime and not row.noisy]
    assert scores(kept).time_mape <= 0.15


def test_nothing_measured_is_read(rows: list[Row]) -> None:
    def predictions(table: Sequence[Row]) -> list[object]:
        scored, _ = score_rows(table)
        return [(s.id, s.setting, s.time_s, s.low_s, s.memory_gib, s.fits) for s in scored]

    emptied = [{**row, **dict.fromkeys(MEASURED, "")} for row in rows]
    assert predictions(emptied) == predictions(rows)


def test_intervals_are_narrow_only_for_what_was_measured(rows: list[Row]) -> None:
    timed = [row for row in rows if row["step_time_s"] and not row["noise"].startswith("high")]
    assert all(measured(configuration(row)) for row in timed)
    with UNSEEN.open(newline="", encoding="utf-8") as file:
        unseen = [configuration(complete(row)) for row in csv.DictReader(file)]
    assert {measured(c) for c in unseen if c.trainable is None} == {True, False}
    assert not any(measured(c) for c in unseen if c.trainable is not None)


def test_free_text_decides_nothing(rows: list[Row]) -> None:
    words = dict.fromkeys(("notes", "table", "dims_source"), "Omni-Path, OPA, JZ")
    scored, _ = score_rows(rows)
    other, _ = score_rows([{**row, **words} for row in rows])
    assert [(s.setting, s.time_s) for s in scored] == [(s.setting, s.time_s) for s in other]


def test_command_prints_every_grouping(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FILE)]) == 0
    text = capsys.readouterr().out
    for word in ("dense, not noisy", "bigsci_tr11", "a100-80", "experts", "MAPE", "regret"):
        assert word in text


def test_command_writes_json_and_predictions(
    rows: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "predictions.csv"
    assert main([str(FILE), "--json", "--predictions", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["overall"]["all"]["rows"] == len(rows)
    assert report["source"]["litgpt_lora"]["time_mape"] is None
    with out.open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == [row["id"] for row in rows]
    assert all(float(row["low_s"]) < float(row["step_time_s"]) for row in written)
    assert {row["oom"] for row in written} == {"0", "1"}


def test_rows_that_lack_too_much_are_named() -> None:
    bad = [
        {**GOOD, "id": "chip", "gpu": "h9000"},
        {**GOOD, "id": "mode", "act_ckpt": "ful"},
        {**GOOD, "id": "word", "tp": "two"},
        {**GOOD, "id": "name", "hidden": "", "model": "DeepSeekV4"},
        {**GOOD, "id": "experts", "model": "m", "arch": "moe", "params_b": ""},
        {**GOOD, "id": "none", "n_gpus": "0"},
        {**GOOD, "id": "endless", "seq_len": "inf"},
    ]
    scored, refused = score_rows([GOOD, *bad])
    assert [row.id for row in scored] == ["good"]
    assert set(refused) == {row["id"] for row in bad}
    assert "did you mean 'full'" in refused["mode"]
    assert "tp: expected a number, got 'two'" in refused["word"]
    assert "did you mean 'DeepSeekV3'" in refused["name"]
    assert "says of how many" in refused["experts"]
    assert "seq_len: expected a number, got 'inf'" in refused["endless"]


def test_command_takes_tables_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "odd.csv"
    columns = [*(column for column in COLUMNS if column not in ("id", "notes", "cp")), "extra"]
    with table.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", restval="x")
        writer.writeheader()
        writer.writerows([GOOD, {**GOOD, "gpu": "h9000"}, {**GOOD, "gpu": "h9001"}])
    out = tmp_path / "predictions.csv"
    assert main([str(table), "--predictions", str(out)]) == 0
    assert "predicted 1 of 3 rows" in capsys.readouterr().out
    with out.open(newline="", encoding="utf-8") as file:
        written = {row["id"]: row["not_predicted"] for row in csv.DictReader(file)}
    assert list(written) == ["row 1", "row 2", "row 3"]
    assert "h9001" in written["row 3"]


def test_rows_of_one_name_are_all_counted() -> None:
    _, refused = score_rows([{**GOOD, "gpu": "h9000"}] * 3)
    assert list(refused) == ["good", "good (2)", "good (3)"]


def test_a_file_that_is_not_there_is_an_error_of_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none.csv")])
    assert "can't read" in capsys.readouterr().err
