"""Model shapes from Hugging Face's ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestration.planning.model.config_json import ConfigReader
from orchestration.planning.model.families import FAMILIES
from orchestration.planning.model.images import as_text, labels, with_patches
from orchestration.planning.model.shapes import ModelError, ModelShape
from orchestration.planning.model.without_formula import without_formula


def from_config(config: Mapping[str, object], name: str | None = None) -> ModelShape:
    """Return the shape of a model from the content of its ``config.json``.

    It is exact for the families in `FAMILIES`. Any other decoder is read as a Llama and marked
    `approximate`, and so is the text part of a multimodal model.

    Raises:
        ModelError: numbers are missing (the error names all of them), the family is unknown, or no
            formula predicts such models.
    """
    text = config.get("text_config")
    if isinstance(text, Mapping):
        return replace(from_config(text, name), approximate=True)
    kind = str(config.get("model_type") or config.get("_class_name") or "")
    family = FAMILIES.get(kind)
    if family is None and (what := without_formula(config, kind)) is not None:
        raise ModelError(
            f"no formula predicts models of type {kind!r} ({what}); to plan by a probe, write "
            "model: {custom: true, parameters: …} and run `orchestrate probe`"
        )
    if family is None and config.get("is_encoder_decoder"):
        known = sorted(key for key in FAMILIES if FAMILIES[key].kind == "encoder-decoder")
        raise ModelError(
            f"unknown encoder-decoder {kind!r}; expected {', '.join(known)}. "
            "Give the number of parameters instead"
        )
    conventions = family or FAMILIES["llama"]
    values = {key: value for key, value in config.items() if value is not None}
    values |= as_text(values, kind)
    reader = ConfigReader({**conventions.defaults, **values}, conventions, kind)
    shape = _shape(reader, name or str(config.get("_name_or_path") or kind or "model"))
    return shape if family is not None else replace(shape, approximate=True)


def _shape(reader: ConfigReader, name: str) -> ModelShape:
    if missing := reader.missing():
        raise ModelError(
            f"the configuration of {name!r} lacks {'; '.join(missing)}; without "
            "them, give parameters, or plan by a probe (model: {custom: true, parameters: …})"
        )
    plain = reader.first("ffn") or round(
        reader.number("expansion_ratio", 4) * reader.required("hidden")
    )
    matrices = ModelShape(
        name=name,
        kind=reader.family.kind,
        layers=reader.layers,
        encoder_layers=reader.encoder_layers,
        hidden=reader.required("hidden"),
        heads=reader.required("heads"),
        kv_heads=reader.kv_heads,
        head_width=reader.head_width,
        value_width=reader.number("v_head_dim") if reader.latent else 0,
        latent=reader.latent,
        window=reader.window,
        windowed_layers=reader.windowed_layers,
        ffn=plain,
        gated=reader.gated,
        vocabulary=reader.required("vocabulary"),
        tied_embeddings=reader.truth("tie_word_embeddings", reader.family.tied),
        has_head=reader.has_head,
        embedding_width=reader.embedding_width,
        rotary=reader.family.norm_size < 2,
        positions=reader.positions,
        max_sequence=reader.first("sequence"),
    )
    return _with_vectors(reader, _with_experts(reader, matrices))


def _with_experts(reader: ConfigReader, shape: ModelShape) -> ModelShape:
    experts = reader.first("experts")
    if not experts:
        return shape
    shared = reader.number("n_shared_experts")
    step, listed = reader.number("decoder_sparse_step", 1), reader.config.get("mlp_only_layers")
    dense = set(listed) if isinstance(listed, list) else set()
    dense |= {layer for layer in range(shape.layers) if (layer + 1) % step}
    dense |= set(range(reader.number("first_k_dense_replace")))
    return replace(
        shape,
        ffn=reader.number("moe_intermediate_size", shape.ffn),
        experts=experts,
        active_experts=reader.number("num_experts_per_tok", 1) + shared,
        shared_experts=shared,
        shared_ffn=reader.number("shared_expert_intermediate_size"),
        dense_layers=len(dense),
        dense_ffn=shape.ffn if dense else 0,
    )


def _with_vectors(reader: ConfigReader, shape: ModelShape) -> ModelShape:
    """Add the parameters of norms, biases, routing gates and position buckets."""
    family, hidden = reader.family, shape.hidden
    norm = family.norm_size * hidden
    attention = _attention_vectors(reader, shape)
    widths = shape.ffn * (2 if shape.gated else 1)
    ffn = widths + hidden if reader.bias(family.ffn_bias) else 0
    halves = 2 if family.kind == "encoder-decoder" else 1
    other = norm * halves * (family.final_norm and not reader.norms_after)
    if family.embedding_norm:
        other += norm * halves
    if family.head_bias:
        other += shape.vocabulary
    if shape.shared_ffn:  # the gate that weighs the shared expert
        other += shape.sparse_layers * hidden
    if reader.kind == "t5":
        other += 2 * reader.number("relative_attention_num_buckets", 32) * shape.heads
    shape = replace(
        shape,
        layer_vectors=reader.norms * norm + shape.attentions * attention + ffn,
        encoder_layer_vectors=2 * norm + attention + ffn,
        other_parameters=other,
    )
    if family.images:
        return with_patches(reader, shape)
    return _with_encoder_head(reader, shape) if family.kind == "encoder" else shape


def _attention_vectors(reader: ConfigReader, shape: ModelShape) -> int:
    query = reader.family.query_norm
    if reader.truth("qk_layernorm") or reader.truth("use_qk_norm"):
        query = "all"
    norms = {"": 0, "head": 2 * shape.key_width, "all": shape.query_width + shape.kv_width}
    vectors = norms[query]
    if reader.bias(reader.family.query_bias):
        vectors += shape.query_width + 2 * shape.kv_width
    if reader.bias(reader.family.output_bias):
        vectors += shape.hidden
    if shape.latent is not None:
        vectors += (shape.latent.query_rank or 0) + shape.latent.key_value_rank
    return vectors


def _with_encoder_head(reader: ConfigReader, shape: ModelShape) -> ModelShape:
    hidden, other = shape.hidden, shape.other_parameters
    if reader.kind != "distilbert":
        other += reader.number("type_vocab_size", 2) * hidden
    if shape.has_head:  # a transform with its norm, and a bias per word
        vectors = 3 * hidden + shape.vocabulary
        return replace(shape, head_projection=hidden * hidden, other_parameters=other + vectors)
    if reader.kind == "distilbert" and reader.architecture.endswith("Model"):
        return replace(shape, other_parameters=other)
    classifier = 0 if reader.architecture.endswith("Model") else labels(reader) * (hidden + 1)
    return replace(shape, other_parameters=other + hidden * (hidden + 1) + classifier)
