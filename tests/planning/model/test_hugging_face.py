"""Shapes from ``config.json``: those of published checkpoints, and of transformers' own models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestration.planning.model.families import FAMILIES
from orchestration.planning.model.hugging_face import from_config
from orchestration.planning.model.images import tokens
from orchestration.planning.model.shapes import ModelError
from tests.planning.model.published_models import (
    GPT2,
    GPT_OSS_20B,
    LLAMA_2_7B,
    LLAMA_3_8B,
    PUBLISHED,
    QWEN_25_7B,
)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_published_checkpoint(name: str) -> None:
    config, parameters = PUBLISHED[name]
    assert from_config(config).parameters == parameters


def meta(config: Mapping[str, object], kind: str, **options: object) -> Any:
    """The model as transformers builds it, without memory for its weights."""
    transformers = pytest.importorskip("transformers")
    import torch

    values = {**config}
    loaded = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    if kind == "images":  # of DeiT, there are two
        loaded.architectures = [
            type(loaded).__name__.removesuffix("Config") + "ForImageClassification"
        ]
    loader = {
        "images": transformers.AutoModelForImageClassification,
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModelForMaskedLM,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
    }[kind]
    with torch.device("meta"):
        return loader.from_config(loaded, **options)


def counted(model: Any) -> int:
    return sum(tensor.numel() for tensor in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_parameters_are_those_of_transformers(family: str) -> None:
    facts = FAMILIES[family]
    model = meta({"model_type": family}, "images" if facts.images else facts.kind)
    config = model.config
    assert from_config(config.to_dict()).parameters == counted(model)
    assert from_config(config.to_diff_dict()).parameters == counted(model)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "vit", "qkv_bias": False, "num_labels": 1000},
        {
            "model_type": "vit", "image_size": 384, "patch_size": 14, "hidden_size": 1280,
            "num_hidden_layers": 3, "num_attention_heads": 16, "intermediate_size": 5120,
        },
        {"model_type": "deit", "num_channels": 1, "image_size": [64, 32], "patch_size": [16, 8]},
    ],
)  # fmt: skip
def test_a_vision_transformers_parameters_and_operations_are_those_of_torch(
    config: dict[str, object],
) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model = meta(config, "images", attn_implementation="eager").eval()
    values = model.config.to_dict()
    shape = from_config(values)
    assert shape.parameters == counted(model)
    size = values["image_size"]
    image = (1, values["num_channels"], *(size if isinstance(size, list) else [size, size]))
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(pixel_values=torch.zeros(image, device="meta"))
    own = tokens(values) or 0
    assert own == shape.max_sequence
    # Here the model's own tokens pass the projection of patches too.
    assert own * shape.forward_flops_per_token(own) == pytest.approx(
        counter.get_total_flops(), rel=2e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["ForSequenceClassification", "Model"])
@pytest.mark.parametrize(
    ("family", "start"),
    [("bert", "Bert"), ("roberta", "Roberta"), ("distilbert", "DistilBert")],
)
def test_encoders_without_a_language_head(family: str, start: str, ending: str) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    config = transformers.AutoConfig.for_model(family, num_labels=5)
    with torch.device("meta"):
        model = getattr(transformers, start + ending)(config)
    values = config.to_dict() | {"architectures": [start + ending]}
    assert from_config(values).parameters == counted(model)


@pytest.mark.slow
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
    ids=lambda config: config["model_type"],
)
def test_forward_operations_are_those_that_torch_counts(config: dict[str, object]) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    kind = FAMILIES[str(config["model_type"])].kind
    model = meta(config, kind, attn_implementation="eager").eval()
    words = torch.zeros((1, 64), dtype=torch.long, device="meta")
    targets = {"decoder_input_ids": words} if kind == "encoder-decoder" else {}
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(input_ids=words, **targets)
    shape = from_config(model.config.to_dict())
    # torch counts rotary angles as matrix products too: a thousandth of a percent.
    assert counter.get_total_flops() == pytest.approx(
        64 * shape.forward_flops_per_token(64), rel=2e-5
    )


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
    with pytest.raises(ModelError, match=r"'marian'.*bart, t5"):
        from_config({"model_type": "marian", "is_encoder_decoder": True})


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"model_type": "swin", "image_size": 224, "patch_size": 4}, "images"),
        ({"model_type": "resnet", "depths": [3, 4, 6, 3]}, "images"),
        ({"model_type": "beit", "num_channels": 3}, "images"),
        ({"model_type": "whisper", "is_encoder_decoder": True}, "speech"),
        ({"_class_name": "UNet2DConditionModel", "sample_size": 64}, "diffusion"),
        ({"model_type": "mamba2", "state_size": 128}, "state-space"),
        (LLAMA_3_8B | {"model_type": "nemotron_h", "ssm_state_size": 128}, "state-space"),
        (LLAMA_3_8B | {"model_type": "jamba", "mamba_d_state": 16}, "state-space"),
    ],
)
def test_models_without_a_formula_are_to_be_measured(config: dict[str, object], what: str) -> None:
    with pytest.raises(ModelError, match=rf"no formula.*\({what}.*probe"):
        from_config(config)


def test_a_mixture_of_an_unknown_family_has_the_parameters_of_its_authors() -> None:
    shape = from_config(GPT_OSS_20B)
    assert shape.parameters / 1e9 == pytest.approx(20.9, abs=0.05)
    assert shape.windowed_layers == 12


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(ModelError, match="hidden_size: expected a number, got 'large'"):
        from_config(LLAMA_2_7B | {"hidden_size": "large"})


@pytest.mark.parametrize("size", [[224], [224, 224, 3], [0, 224], "224", 22.4])
def test_an_images_size_is_a_number_or_a_pair(size: object) -> None:
    with pytest.raises(ModelError, match="image_size: expected a number or a pair of them"):
        from_config({"model_type": "vit", "image_size": size})
