"""Scores customers: lines of CSV with numbers in, a line with one number for each out."""

from __future__ import annotations

import json
from pathlib import Path


def model_fn(model_dir: str) -> list[float]:
    weights: list[float] = json.loads((Path(model_dir) / "weights.json").read_text())
    return weights


def input_fn(body: str, content_type: str) -> list[list[float]]:
    if content_type != "text/csv":
        raise ValueError(f"expected text/csv, got {content_type}")
    return [[float(cell) for cell in line.split(",")] for line in body.splitlines()]


def predict_fn(rows: list[list[float]], weights: list[float]) -> list[float]:
    return [sum(w * x for w, x in zip(weights, row, strict=True)) for row in rows]


def output_fn(scores: list[float], accept: str) -> tuple[str, str]:
    return "".join(f"{score:.2f}\n" for score in scores), accept
