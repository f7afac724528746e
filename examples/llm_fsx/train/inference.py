"""Serves a language model checkpoint: the four functions that SageMaker's PyTorch containers call.

Request: `{"instances": ["text", ...], "parameters": {"max_new_tokens": 64}}`, one token one byte.
Response: `{"predictions": [{"text": "what follows"}, ...]}`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from shared import model

JSON = "application/json"
MOST_TOKENS = 1024


@dataclass(frozen=True)
class Request:
    prompts: tuple[str, ...]
    max_new_tokens: int = 64


def model_fn(model_dir: str) -> model.ByteTransformer:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return model.load(Path(model_dir)).to(device)


def input_fn(request_body: str | bytes, content_type: str = JSON) -> Request:
    """The prompts of a request; a ValueError says what is wrong with one."""
    if content_type.split(";")[0].strip() != JSON:
        raise ValueError(f"content type {content_type!r} is not supported; send {JSON}")
    try:
        body = json.loads(request_body)
    except ValueError as error:
        raise ValueError(f"the request is not JSON: {error}") from error
    if not isinstance(body, dict) or not {"instances"} <= set(body) <= {"instances", "parameters"}:
        raise ValueError('the request must be {"instances": ["text", ...], "parameters": {...}}')
    prompts, parameters = body["instances"], body.get("parameters", {})
    if not isinstance(prompts, list) or not prompts:
        raise ValueError('"instances" must be a list of at least one text')
    for index, prompt in enumerate(prompts):
        if not isinstance(prompt, str) or not prompt:
            raise ValueError(f"instances[{index}] must be a text that is not empty")
    if not isinstance(parameters, dict) or not set(parameters) <= {"max_new_tokens"}:
        raise ValueError('"parameters" must be an object; it knows "max_new_tokens"')
    tokens = parameters.get("max_new_tokens", Request.max_new_tokens)
    if type(tokens) is not int or not 1 <= tokens <= MOST_TOKENS:
        raise ValueError(f'"max_new_tokens" must be a whole number from 1 to {MOST_TOKENS}')
    return Request(tuple(prompts), tokens)


def predict_fn(request: Request, network: model.ByteTransformer) -> list[str]:
    """The likeliest continuation of each prompt, byte by byte."""
    with torch.inference_mode():
        return [_follow(network, prompt, request.max_new_tokens) for prompt in request.prompts]


def output_fn(texts: list[str], accept: str = JSON) -> str:
    if not any(kind in accept for kind in (JSON, "application/*", "*/*")):
        raise ValueError(f"cannot answer with {accept!r}; accept {JSON}")
    return json.dumps({"predictions": [{"text": text} for text in texts]})


def _follow(network: model.ByteTransformer, prompt: str, count: int) -> str:
    device = network.head.weight.device
    tokens = list(prompt.encode())
    known = len(tokens)
    for _ in range(count):
        window = torch.tensor([tokens[-network.config.context :]], device=device)
        tokens.append(int(network(window)[0, -1].argmax().item()))
    return bytes(tokens[known:]).decode(errors="replace")
