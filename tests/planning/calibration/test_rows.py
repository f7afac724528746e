"""Rows of tables in their own spelling, and with cells left empty."""

from __future__ import annotations

import pytest

from orchestration.planning.calibration.evaluate import score_rows
from orchestration.planning.calibration.rows import COLUMNS, complete
from orchestration.planning.calibration.scores import Scored
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes
from tests.planning.calibration.example_rows import GOOD


def predicted(**cells: str) -> Scored:
    """The good row's prediction with some other cells."""
    scored, refused = score_rows([{**GOOD, **cells}])
    assert refused == {}
    return scored[0]


@pytest.mark.parametrize(
    ("gpu", "memory_gib", "key"),
    [
        ("H100 SXM", "80", "h100"),
        ("NVIDIA H100 80GB HBM3", "80", "h100"),
        ("A100-SXM4-80GB", "80", "a100-80"),
        ("A100-SXM4-40GB", "", "a100-40"),
        ("NVIDIA-A100-40", "", "a100-40"),
        ("a100", "40", "a100-40"),
        ("A800", "80", "a100-80"),
        ("GH200", "96", "h100"),
        ("Tesla V100-SXM2-32GB", "", "v100"),
        ("ml.p4de.24xlarge", "80", "a100-80"),
        ("Trainium2", "96", "trn2"),
    ],
)
def test_accelerators_are_known_by_their_other_names(gpu: str, memory_gib: str, key: str) -> None:
    assert predicted(gpu=gpu, gpu_mem_gib=memory_gib).accelerator == key


@pytest.mark.parametrize(
    ("column", "spelt", "meant"),
    [
        ("precision", "BF16", "bf16"),
        ("precision", "bf16-mixed", "bf16"),
        ("precision", "", "bf16"),
        ("precision", "fp8_delayed", "fp8"),
        ("precision", "float32", "fp32"),
        ("act_ckpt", "FULL", "full"),
        ("act_ckpt", "True", "full"),
        ("act_ckpt", "off", "none"),
        ("act_ckpt", "selective_ops", "selective_op"),
        ("flash_attn", "true", "1"),
        ("flash_attn", "", "1"),
        ("flash_attn", "False", "0"),
        ("zero_stage", "FSDP", "3"),
        ("zero_stage", "ZeRO-2", "2"),
        ("zero_stage", "DDP", "0"),
        ("compile", "True", "1"),
        ("cpu_offload", "False", "0"),
        ("sequence_parallel", "true", "1"),
        ("seq_len", "4,096", "4096"),
        ("n_heads", "", "32"),
        ("vocab", "", "32000"),
        ("ffn_hidden", "", "11008"),
        ("gpu_mem_gib", "", "80"),
        ("micro_batch_seqs", "", "1"),
    ],
)
def test_cells_may_be_spelt_otherwise_or_empty(column: str, spelt: str, meant: str) -> None:
    assert predicted(**{column: spelt}).setting == predicted(**{column: meant}).setting


def test_a_network_that_is_not_given_is_that_of_aws() -> None:
    row = predicted(n_gpus="16")
    assert row.setting == predicted(n_gpus="16", internode_gbps_per_node="3200").setting


def test_framework_of_fully_sharded_rows_tells_their_stage() -> None:
    row = predicted(framework="FSDP2 recipe", zero_stage="")
    assert row.setting == predicted(framework="FSDP2 recipe", zero_stage="3").setting


def test_trainium_2_has_four_logical_cores_a_chip() -> None:
    row = predicted(gpu="trn2", gpu_mem_gib="96", n_gpus="16", gpus_per_node="16")
    assert isinstance(row.setting, Configuration)
    assert row.setting.machine.devices == 64
    assert row.setting.machine.device_memory_gib == 24


def test_mixtures_with_sizes_have_their_experts() -> None:
    mixtral = {"model": "mixtral-8x7b", "arch": "moe", "vocab": "32000", "params_b": "46.7"}
    for cells in (mixtral, mixtral | {"model": "m"}, mixtral | {"hidden": "", "n_layers": ""}):
        row = predicted(**cells)
        assert row.regime == "experts"
        assert isinstance(row.setting, Configuration)
        assert row.setting.model.experts == 8
        assert row.setting.model.parameters == pytest.approx(46.7e9, rel=0.02)


def test_models_without_sizes_are_guessed_from_their_parameters() -> None:
    row = predicted(model="new-7b", params_b="7.0", hidden="", n_layers="")
    assert isinstance(row.setting, Configuration)
    assert row.setting.model.approximate
    assert row.setting.model.parameters == 7e9


def test_adapters_without_a_number_of_parameters_are_no_full_training() -> None:
    full = predicted()
    for cells in ({"arch": "lora", "optimizer": "adamw"}, {"optimizer": "adamw LoRA r=16"}):
        row = predicted(**cells)
        assert isinstance(row.setting, Configuration)
        assert 1e6 < (row.setting.trainable or 0) < 1e8
        assert row.memory_gib < full.memory_gib


def test_measurements_that_are_no_numbers_are_not_scored() -> None:
    odd = {"mem_gib_per_gpu": "~70", "step_time_s": "nan", "tokens_s_per_gpu": "0", "oom": "?"}
    row = predicted(**odd)
    assert row.measured_time_s is row.measured_memory_gib is row.out_of_memory is None
    assert predicted(oom="True").out_of_memory is True


def test_columns_that_a_file_lacks_are_as_empty() -> None:
    assert complete({"id": "1", "notes": None})["notes"] == ""
    assert set(complete({})) == set(COLUMNS)


def test_a_measured_network_and_the_hosts_processors_are_columns() -> None:
    cells = {"n_gpus": "64", "internode_gbps_per_node": "400"}
    usual = predicted(**cells)
    measured = predicted(**cells, internode_collective_gbps="80")
    assert measured.time_s > usual.time_s
    offloaded = {"cpu_offload": "optimizer", "vcpus_per_node": "48"}
    assert predicted(**offloaded).time_s > predicted(**offloaded | {"vcpus_per_node": "192"}).time_s


def test_dropout_is_a_column_and_else_what_the_framework_does() -> None:
    plain, hidden, every = (
        predicted(dropout=word, flash_attn="0").time_s for word in ("", "hidden", "all")
    )
    assert plain < hidden < every
    megatron = {"framework": "megatron-lm", "date": "2021-01-01", "flash_attn": "0"}
    assert predicted(**megatron).setting == predicted(**megatron, dropout="all").setting
    _, refused = score_rows([{**GOOD, "dropout": "some"}])
    assert "expected none, hidden or all" in refused["good"]


def test_a_decoder_behind_an_encoder_attends_twice() -> None:
    cells = {"arch": "bart", "gated_mlp": "0", "flash_attn": "0"}
    row = predicted(**cells)
    assert isinstance(row.setting, Configuration)
    assert sizes(row.setting.model, row.sequence).attentions == 1.5
