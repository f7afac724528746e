"""Estimates the price of a flat."""

from __future__ import annotations

import json
from pathlib import Path


def model_fn(model_dir: str) -> dict[str, float]:
    weights: dict[str, float] = json.loads((Path(model_dir) / "weights.json").read_text())
    return weights


def predict_fn(flat: dict[str, float], weights: dict[str, float]) -> dict[str, float]:
    return {"price": weights["base"] + sum(weights[name] * flat[name] for name in flat)}
