"""Serves the fine-tuned model: `{"text": "...", "tokens": 20}` in, what it goes on with out."""

from __future__ import annotations

import json
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def model_fn(model_dir: str) -> tuple[Any, Any]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(model_dir).to(device).eval()
    return model, AutoTokenizer.from_pretrained(model_dir)


def input_fn(body: str, content_type: str) -> dict[str, Any]:
    # Your code: what a request looks like.
    if content_type != "application/json":
        raise ValueError(f"expected application/json, got {content_type}")
    request: dict[str, Any] = json.loads(body)
    return request


def predict_fn(request: dict[str, Any], loaded: tuple[Any, Any]) -> dict[str, str]:
    model, tokenizer = loaded
    # Types of tokens, which some tokenizers add, mean nothing to a causal model, and are refused.
    text = tokenizer(request["text"], return_tensors="pt", return_token_type_ids=False)
    given = text.to(model.device)
    # Your code: how the answer is generated; this one is the most probable, always the same.
    whole = model.generate(
        **given,
        max_new_tokens=int(request.get("tokens", 20)),
        do_sample=False,
        pad_token_id=tokenizer.eos_token_id,
    )
    new = whole[0, given["input_ids"].shape[1] :]
    return {"text": tokenizer.decode(new, skip_special_tokens=True)}


def output_fn(answer: dict[str, str], accept: str) -> str:
    return json.dumps(answer)
