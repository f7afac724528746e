"""Answers with the score of the checkpoint that is served."""

import json
from pathlib import Path
from typing import Any


def model_fn(model_dir: str) -> Any:
    return json.loads((Path(model_dir) / "model.json").read_text())


def input_fn(body: bytes, content_type: str) -> Any:
    return json.loads(body)


def predict_fn(data: Any, model: Any) -> Any:
    return {"score": model["score"], "asked": data}


def output_fn(prediction: Any, accept: str) -> str:
    return json.dumps(prediction)
