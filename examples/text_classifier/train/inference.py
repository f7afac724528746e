"""Serves the model: a list of texts in, a label and its probability for each out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from shared import model, texts


def model_fn(model_dir: str) -> model.Classifier:
    return model.load(Path(model_dir))


def input_fn(body: str, content_type: str) -> list[str]:
    # Your code: what a request looks like.
    if content_type != "application/json":
        raise ValueError(f"expected application/json, got {content_type}")
    given: list[str] = json.loads(body)
    return given


def predict_fn(given: list[str], network: model.Classifier) -> list[dict[str, Any]]:
    with torch.inference_mode():
        best = network(*texts.encoded(given)).softmax(dim=1).max(dim=1)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [{"label": network.labels[number], "probability": value} for number, value in pairs]


def output_fn(answers: list[dict[str, Any]], accept: str) -> str:
    return json.dumps(answers)
