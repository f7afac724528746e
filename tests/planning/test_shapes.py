from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.planning.families import FAMILIES
from orchestration.planning.model_configs import from_config
from orchestration.planning.shapes import ModelError, ModelShape
from orchestration.planning.usual_shapes import of_size, transformer

LLAMA_2_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
LLAMA_3_8B = LLAMA_2_7B | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
LLAMA_3_70B = LLAMA_3_8B | {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
}
QWEN_25_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
MIXTRAL_8X7B = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
FALCON_40B = {
    "model_type": "falcon",
    "bias": False,
    "hidden_size": 8192,
    "new_decoder_architecture": True,
    "num_attention_heads": 128,
    "num_hidden_layers": 60,
    "num_kv_heads": 8,
    "vocab_size": 65024,
}
BLOOM = {
    "model_type": "bloom",
    "n_embed": 14336,
    "n_layer": 70,
    "num_attention_heads": 112,
    "vocab_size": 250880,
}
OPT_350M = {
    "model_type": "opt",
    "do_layer_norm_before": False,
    "ffn_dim": 4096,
    "hidden_size": 1024,
    "max_position_embeddings": 2048,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "vocab_size": 50272,
    "word_embed_proj_dim": 512,
}
GPT2 = {
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
FLAN_T5_XL = {
    "model_type": "t5",
    "d_ff": 5120,
    "d_kv": 64,
    "d_model": 2048,
    "feed_forward_proj": "gated-gelu",
    "is_encoder_decoder": True,
    "num_decoder_layers": 24,
    "num_heads": 32,
    "num_layers": 24,
    "tie_word_embeddings": False,
    "vocab_size": 32128,
}

PUBLISHED = {
    "llama-2-7b": (LLAMA_2_7B, 6_738_415_616),
    "llama-3-8b": (LLAMA_3_8B, 8_030_261_248),
    "llama-3-70b": (LLAMA_3_70B, 70_553_706_496),
    "qwen-2.5-7b": (QWEN_25_7B, 7_615_616_512),
    "mixtral-8x7b": (MIXTRAL_8X7B, 46_702_792_704),
    "falcon-40b": (FALCON_40B, 41_303_293_952),
    "bloom": (BLOOM, 176_247_271_424),
    "opt-350m": (OPT_350M, 331_196_416),
    "gpt2": (GPT2, 124_439_808),
    "flan-t5-xl": (FLAN_T5_XL, 2_849_757_184),
}
"""What the safetensors of the published checkpoints hold."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_published_checkpoint(name: str) -> None:
    config, parameters = PUBLISHED[name]
    assert from_config(config).parameters == parameters


def meta(config: Mapping[str, object], kind: str, **options: object) -> Any:
    """The model as transformers builds it, without memory for its weights."""
    transformers = pytest.importorskip("transformers")
    import torch

    one = {**config}
    loaded = transformers.AutoConfig.for_model(one.pop("model_type"), **one)
    loader = {
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModelForMaskedLM,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
    }[kind]
    with torch.device("meta"):
        return loader.from_config(loaded, **options)


def counted(model: Any) -> int:
    return sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_parameters_are_those_of_transformers(family: str) -> None:
    model = meta({"model_type": family}, FAMILIES[family].kind)
    config = model.config
    assert from_config(config.to_dict()).parameters == counted(model)
    assert from_config(config.to_diff_dict()).parameters == counted(model)


@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("llama", {"attention_bias": True}),
        ("llama", {"mlp_bias": True, "tie_word_embeddings": True}),
        ("llama", {"head_dim": 96, "num_key_value_heads": 4}),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 71}),
        ("falcon", {"parallel_attn": False, "bias": True, "multi_query": False}),
        ("stablelm", {"use_parallel_residual": True, "use_qkv_bias": True, "qk_layernorm": True}),
        ("cohere", {"use_qk_norm": True}),
        ("opt", {"word_embed_proj_dim": 512, "do_layer_norm_before": False}),
        ("qwen2_moe", {"decoder_sparse_step": 2, "qkv_bias": False}),
        ("qwen3_moe", {"mlp_only_layers": [0, 1, 5]}),
        ("deepseek_v2", {"q_lora_rank": None, "n_shared_experts": 2}),
        ("deepseek_v3", {"first_k_dense_replace": 1, "num_hidden_layers": 8}),
        ("t5", {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 3}),
        ("bart", {"decoder_layers": 6}),
        ("gpt_bigcode", {"multi_query": False}),
        ("gpt2", {"n_inner": 1000}),
    ],
)
def test_options_change_the_parameters_as_in_transformers(
    family: str, change: dict[str, object]
) -> None:
    model = meta({"model_type": family, **change}, FAMILIES[family].kind)
    assert from_config(model.config.to_dict()).parameters == counted(model)


@pytest.mark.parametrize("ending", ["ForSequenceClassification", "Model"])
@pytest.mark.parametrize(
    ("family", "start"), [("bert", "Bert"), ("roberta", "Roberta"), ("distilbert", "DistilBert")]
)
def test_encoders_without_a_language_head(family: str, start: str, ending: str) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    config = transformers.AutoConfig.for_model(family, num_labels=5)
    with torch.device("meta"):
        model = getattr(transformers, start + ending)(config)
    told = config.to_dict() | {"architectures": [start + ending]}
    assert from_config(told).parameters == counted(model)


@pytest.mark.parametrize(
    "config",
    [
        LLAMA_3_8B,
        GPT2,
        QWEN_25_7B,
        {"model_type": "gemma2", "layer_types": ["full_attention"] * 26},
        {"model_type": "bert"},
        {"model_type": "t5"},
        {"model_type": "bart"},
        {"model_type": "deepseek_v2", "first_k_dense_replace": 27, "num_hidden_layers": 27},
    ],
    ids=lambda one: one["model_type"],
)
def test_forward_operations_are_those_that_torch_counts(config: dict[str, object]) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    kind = FAMILIES[str(config["model_type"])].kind
    model = meta(config, kind, attn_implementation="eager").eval()
    tokens = torch.zeros((1, 64), dtype=torch.long, device="meta")
    given = {"decoder_input_ids": tokens} if kind == "encoder-decoder" else {}
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(input_ids=tokens, **given)
    shape = from_config(model.config.to_dict())
    # Rotary angles are matrix products, too, to torch: a thousandth of a percent.
    assert counter.get_total_flops() == pytest.approx(
        64 * shape.forward_flops_per_token(64), rel=2e-5
    )


def test_training_costs_six_operations_per_parameter_and_token() -> None:
    shape = from_config(LLAMA_2_7B)
    products = 6 * (shape.parameters - shape.vocabulary * shape.hidden)
    scores = 12 * shape.layers * shape.hidden * 4096
    assert shape.training_flops_per_token(4096) == pytest.approx(products + scores, rel=1e-4)


def test_causal_kernels_do_half_of_the_scores() -> None:
    shape = from_config(LLAMA_2_7B)
    whole = shape.attention_flops_per_token(4096)
    assert shape.attention_flops_per_token(4096, causal=True) == whole / 2


@pytest.mark.parametrize("sequence", [16, 4096, 100_000])
@pytest.mark.parametrize("causal", [True, False])
def test_a_window_never_adds_operations(sequence: int, causal: bool) -> None:
    plain = from_config(LLAMA_2_7B | {"model_type": "mistral"})
    windowed = from_config(LLAMA_2_7B | {"model_type": "mistral", "sliding_window": 4096})
    assert windowed.windowed_layers == 32
    seen = windowed.attention_flops_per_token(sequence, causal=causal)
    assert 0 < seen <= plain.attention_flops_per_token(sequence, causal=causal)


def test_a_token_meets_the_active_experts_only() -> None:
    shape = from_config(MIXTRAL_8X7B)
    assert shape.active_parameters == 12_879_925_248  # 12.9 B, arXiv 2401.04088
    assert shape.expert_parameters == 32 * 8 * 3 * 4096 * 14336


def test_a_model_without_experts_meets_all() -> None:
    shape = from_config(LLAMA_2_7B)
    assert shape.active_parameters == shape.parameters
    assert shape.expert_parameters == 0


@pytest.mark.parametrize("targets", ["attention", "all"])
def test_lora_parameters_are_two_matrices_per_projection(targets: Any) -> None:
    shape = from_config(LLAMA_3_8B)
    rank = 16
    sides = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096)]
    if targets == "all":
        sides += [(4096, 14336)] * 3
    expected = 32 * sum(rank * (one + other) for one, other in sides)
    assert shape.lora_parameters(rank, targets) == expected


def test_unknown_decoders_are_read_as_llama_and_marked() -> None:
    shape = from_config(LLAMA_3_8B | {"model_type": "new_model"})
    assert shape.approximate
    assert shape.parameters == 8_030_261_248


def test_the_text_part_of_several_modalities_is_read_and_marked() -> None:
    shape = from_config({"model_type": "some_vision_model", "text_config": LLAMA_3_8B})
    assert shape.approximate
    assert shape.parameters == 8_030_261_248


def test_every_missing_number_is_named() -> None:
    with pytest.raises(ModelError) as error:
        from_config({"model_type": "llama", "hidden_size": 64}, "mine")
    assert "'mine'" in str(error.value)
    assert "num_hidden_layers" in str(error.value)
    assert "num_attention_heads" in str(error.value)
    assert "vocab_size" in str(error.value)


def test_unreadable_encoder_decoders_are_refused() -> None:
    with pytest.raises(ModelError, match=r"'whisper'.*bart, t5"):
        from_config({"model_type": "whisper", "is_encoder_decoder": True})


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(ModelError, match="hidden_size is 'large'"):
        from_config(LLAMA_2_7B | {"hidden_size": "large"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 0}, "heads is 0"),
        ({"heads": 32, "kv_heads": 12}, "32 heads can't share 12"),
        ({"heads": 33, "kv_heads": 33}, "not a multiple of 33"),
        ({"experts": 8, "active_experts": 9}, "9 of 8 experts"),
        ({"experts": 8, "active_experts": 2, "dense_layers": 3}, "dense_ffn"),
        ({"dense_layers": 99}, "99 of 32 layers"),
    ],
)
def test_what_no_transformer_can_be(change: dict[str, int], message: str) -> None:
    numbers: dict[str, Any] = {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 32,
        "ffn": 11008,
    } | change
    with pytest.raises(ModelError, match=message):
        ModelShape(**numbers, gated=True, vocabulary=32000)


def test_a_few_numbers_make_llama() -> None:
    shape = transformer(layers=32, hidden=4096, heads=32, vocabulary=32000)
    assert shape.parameters == 6_738_415_616
    assert not shape.approximate


def test_a_few_numbers_have_to_fit() -> None:
    with pytest.raises(ModelError, match="4096 is not a multiple of 33 heads"):
        transformer(layers=32, hidden=4096, heads=33, vocabulary=32000)


@given(st.integers(1_000_000, 2_000_000_000_000))
def test_a_guess_keeps_the_number_of_parameters(parameters: int) -> None:
    shape = of_size(parameters)
    assert shape.parameters == parameters
    assert shape.approximate
    assert shape.hidden % shape.heads == 0
    assert abs(shape.other_parameters) < 0.05 * parameters
    assert shape.training_flops_per_token(1) == pytest.approx(6 * parameters, rel=0.1)


@pytest.mark.parametrize(
    ("parameters", "layers", "hidden"),
    [(6.7e9, 32, 4096), (13e9, 40, 5120), (70e9, 80, 8192), (175e9, 96, 12288)],
)
def test_a_guess_is_near_published_models(parameters: float, layers: int, hidden: int) -> None:
    shape = of_size(parameters)
    assert shape.layers == pytest.approx(layers, rel=0.2)
    assert shape.hidden == pytest.approx(hidden, rel=0.2)


def test_too_few_parameters_are_refused() -> None:
    with pytest.raises(ModelError, match="70 parameters are too few"):
        of_size(70)
