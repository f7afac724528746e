"""Serves the model: hours and degrees in, bicycles that will be rented out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from shared import rentals


def model_fn(model_dir: str) -> rentals.Model:
    return rentals.Model.load(Path(model_dir) / "model.npz")


def input_fn(body: str, content_type: str) -> np.ndarray:
    # Your code: what a request looks like.
    if content_type != "application/json":
        raise ValueError(f"expected application/json, got {content_type}")
    return np.array(json.loads(body), dtype=float)


def predict_fn(features: np.ndarray, model: rentals.Model) -> list[float]:
    return [float(value) for value in model.predict(features)]


def output_fn(rented: list[float], accept: str) -> str:
    return json.dumps(rented)
