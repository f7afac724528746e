"""Serves a digits checkpoint: the four functions that SageMaker's PyTorch containers call.

Request: `{"instances": [[64 pixels, 0 to 16], ...]}`.
Response: `{"predictions": [{"label": 7, "probabilities": [ten numbers]}, ...]}`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from torch import Tensor

from shared import model

JSON = "application/json"


def model_fn(model_dir: str) -> model.DigitsNet:
    return model.load(Path(model_dir))


def input_fn(request_body: str | bytes, content_type: str = JSON) -> Tensor:
    """The instances of a request; a ValueError says what is wrong with one."""
    if content_type.split(";")[0].strip() != JSON:
        raise ValueError(f"content type {content_type!r} is not supported; send {JSON}")
    try:
        request = json.loads(request_body)
    except ValueError as error:
        raise ValueError(f"the request is not JSON: {error}") from error
    if not isinstance(request, dict) or set(request) != {"instances"}:
        raise ValueError('the request must be {"instances": [[64 numbers], ...]}')
    instances = request["instances"]
    if not isinstance(instances, list) or not instances:
        raise ValueError('"instances" must be a list of at least one image')
    for index, instance in enumerate(instances):
        if problem := _problem(instance):
            raise ValueError(f"instances[{index}] must be {model.PIXELS} numbers: {problem}")
    return torch.tensor(instances, dtype=torch.float32)


def predict_fn(instances: Tensor, network: model.DigitsNet) -> Tensor:
    """Probabilities of the ten labels, one row per instance."""
    with torch.inference_mode():
        logits: Tensor = network(instances)
        return logits.softmax(dim=1)


def output_fn(probabilities: Tensor, accept: str = JSON) -> str:
    if not any(kind in accept for kind in (JSON, "application/*", "*/*")):
        raise ValueError(f"cannot answer with {accept!r}; accept {JSON}")
    labels = probabilities.argmax(dim=1).tolist()
    predictions = [
        {"label": label, "probabilities": row}
        for label, row in zip(labels, probabilities.tolist(), strict=True)
    ]
    return json.dumps({"predictions": predictions})


def _problem(instance: object) -> str | None:
    if not isinstance(instance, list):
        return f"it is {type(instance).__name__}"
    if len(instance) != model.PIXELS:
        return f"it has {len(instance)}"
    for index, value in enumerate(instance):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"[{index}] is {value!r}"
        if not math.isfinite(value):
            return f"[{index}] is not finite"
    return None
