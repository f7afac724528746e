"""Serves the model: rows of flats in, their rents out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xgboost

from shared import flats


def model_fn(model_dir: str) -> xgboost.Booster:
    return xgboost.Booster(model_file=Path(model_dir) / "model.json")


def input_fn(body: str | bytes, content_type: str) -> xgboost.DMatrix:
    # Your code: what a request looks like.
    if content_type != "application/json":
        raise ValueError(f"expected application/json, got {content_type}")
    return xgboost.DMatrix(np.array(json.loads(body), float), feature_names=flats.FEATURES)


def predict_fn(rows: xgboost.DMatrix, booster: xgboost.Booster) -> list[float]:
    return [round(float(rent), 2) for rent in booster.predict(rows)]


def output_fn(rents: list[float], accept: str) -> str:
    return json.dumps(rents)
