"""Serves the model: rows of customers in, the probability that each leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import joblib


def model_fn(model_dir: str) -> Any:
    return joblib.load(Path(model_dir) / "model.joblib")


def input_fn(body: str, content_type: str) -> list[list[float]]:
    # Your code: what a request looks like.
    if content_type != "application/json":
        raise ValueError(f"expected application/json, got {content_type}")
    rows: list[list[float]] = json.loads(body)
    return rows


def predict_fn(rows: list[list[float]], model: Any) -> list[float]:
    return [float(value) for value in model.predict_proba(rows)[:, 1]]


def output_fn(probabilities: list[float], accept: str) -> str:
    return json.dumps(probabilities)
