"""Predictions of published measurements, and how they are scored."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.planning.evaluate import main, score_rows
from orchestration.planning.rows import COLUMNS, Row, complete
from orchestration.planning.scores import Scored, headline, scores

FILE = Path(__file__).parents[1] / "data/planner/benchmarks.csv"
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
    assert len(scored) == len(rows) == 551
    assert refused == {}


def test_goals_are_met_on_the_rows_at_hand(rows: list[Row]) -> None:
    """Leaving whole sources out is the harder test: see test_fit."""
    found = scores(headline(score_rows(rows)[0]))
    assert found.time_mape <= 0.06
    assert found.time_median <= 0.04
    assert found.time_within_20 >= 0.95
    assert found.pairs_right >= 0.82
    assert found.regret_mean <= 0.03
    assert found.memory_mape <= 0.08
    assert found.out_of_memory_recall >= 0.8
    assert found.fit_recall >= 0.95


@pytest.mark.parametrize("regime", ["bits", "experts", "offload", "neuron"])
def test_odd_regimes_are_within_fifteen_percent(rows: list[Row], regime: str) -> None:
    scored, _ = score_rows(rows)
    kept = [one for one in scored if one.regime == regime and not one.noisy]
    assert scores(kept).time_mape <= 0.15


def test_nothing_measured_is_read(rows: list[Row]) -> None:
    def predictions(table: Sequence[Row]) -> list[object]:
        scored, _ = score_rows(table)
        return [(s.row, s.setting, s.time_s, s.low_s, s.memory_gib, s.fits) for s in scored]

    emptied = [{**row, **dict.fromkeys(MEASURED, "")} for row in rows]
    assert predictions(emptied) == predictions(rows)


def test_command_prints_every_grouping(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FILE)]) == 0
    text = capsys.readouterr().out
    for word in ("dense, not noisy", "bigsci_tr11", "a100-80", "experts", "MAPE", "regret"):
        assert word in text


def test_command_writes_json_and_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "predictions.csv"
    assert main([str(FILE), "--json", "--predictions", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["overall"]["all"]["rows"] == 551
    assert found["source"]["litgpt_lora"]["time_mape"] is None
    with out.open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert len(written) == 551
    assert all(float(row["low_s"]) < float(row["step_time_s"]) for row in written)
    assert {row["oom"] for row in written} == {"0", "1"}


def test_rows_that_lack_too_much_are_named(tmp_path: Path) -> None:
    good = dict.fromkeys(COLUMNS, "") | {
        "id": "good", "framework": "PyTorch", "model": "m", "arch": "llama", "n_layers": "32",
        "hidden": "4096", "n_heads": "32", "n_kv_heads": "8", "ffn_hidden": "14336",
        "gated_mlp": "1", "vocab": "128256", "seq_len": "4096", "gpu": "h100",
        "gpu_mem_gib": "80", "n_gpus": "8", "gpus_per_node": "8", "precision": "bf16",
        "zero_stage": "3", "global_batch_seqs": "64", "micro_batch_seqs": "1",
        "flash_attn": "1",
    }  # fmt: skip
    bad = [
        {**good, "id": "chip", "gpu": "h9000"},
        {**good, "id": "mode", "act_ckpt": "ful"},
        {**good, "id": "word", "tp": "two"},
        {**good, "id": "name", "hidden": "", "model": "DeepSeekV4"},
        {**good, "id": "nodes", "n_gpus": "16"},
        {**good, "id": "heads", "n_heads": ""},
    ]
    scored, refused = score_rows([good, *bad])
    assert [one.row for one in scored] == ["good"]
    assert set(refused) == {"chip", "mode", "word", "name", "nodes", "heads"}
    assert "did you mean 'full'" in refused["mode"]
    assert "tp is 'two', not a number" in refused["word"]
    assert "did you mean 'DeepSeekV3'" in refused["name"]
    assert "network_gbps is not known" in refused["nodes"]


def test_columns_that_a_file_lacks_are_as_empty() -> None:
    assert complete({"id": "1", "notes": None})["notes"] == ""
    assert set(complete({})) == set(COLUMNS)


# Scores, on rows made up.


def scored(time_s: float, measured_s: float | None, **given: object) -> Scored:
    facts: dict[str, object] = {
        "row": str(time_s), "source": "s", "model": "m", "accelerator": "a100-80",
        "regime": "data", "noisy": False, "setting": time_s, "sequence": 2048,
        "chip_tokens": 1.0, "low_s": time_s / 1.1, "high_s": time_s * 1.1, "memory_gib": 10.0,
        "reading_gib": 10.0, "measured_memory_gib": None, "fits": True, "out_of_memory": False,
    }  # fmt: skip
    return Scored(time_s=time_s, measured_time_s=measured_s, **(facts | given))  # type: ignore[arg-type]  # fields by name


def test_errors_are_relative_to_what_was_measured() -> None:
    found = scores([scored(1.1, 1.0), scored(0.7, 1.0, model="n"), scored(9.0, None)])
    assert found.time_mape == pytest.approx(0.2)
    assert found.time_within_20 == 0.5
    assert (found.rows, found.timed) == (3, 2)


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
    one = scored(1.0, 1.0)
    others = [
        scored(2.0, 3.0, model="n"),
        scored(2.0, 3.0, accelerator="h100"),
        scored(2.0, 3.0, source="t"),
        scored(2.0, 3.0, setting=1.0),
    ]
    assert all(scores([one, other]).pairs == 0 for other in others)


def test_regret_is_what_the_choice_costs() -> None:
    rows = [scored(1.0, 1.2), scored(2.0, 1.0)]
    assert scores(rows).regret_mean == pytest.approx(0.2)
    assert scores([rows[0], replace(rows[1], time_s=0.5)]).regret_mean == 0.0


def test_recall_counts_failures_and_successes_apart() -> None:
    rows = [
        scored(1.0, None, out_of_memory=True, fits=False),
        scored(1.0, None, out_of_memory=True, fits=True),
        scored(1.0, None, fits=False),
        scored(1.0, None, out_of_memory=None, fits=False),
    ]
    found = scores(rows)
    assert (found.out_of_memory_recall, found.fit_recall) == (0.5, 0.0)
