"""An estimator's hyperparameters: a training job's own, and those of its ``extra_request``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

TOOLKIT: Final = frozenset(
    [
        "sagemaker_submit_directory",
        "sagemaker_program",
        "sagemaker_container_log_level",
        "sagemaker_job_name",
        "sagemaker_region",
    ]
)
"""Hyperparameters that script mode adds, also to the estimator once it was fitted."""

Split = tuple[dict[str, Any], dict[str, str]]
"""The job's own hyperparameters, and those for its ``extra_request``."""


def split(sent: Mapping[str, str], *, encoded: bool) -> Split:
    """Find values that yield the SDK's text; ``encoded``: the job encodes them as JSON."""
    own: dict[str, Any] = {}
    extra = {}
    for name, text in sent.items():
        value = _decoded(text) if encoded else text
        if value is None or name.startswith("sagemaker_"):
            extra[name] = text
        else:
            own[name] = value
    return own, extra


def _decoded(text: str) -> bool | int | float | str | None:
    """Return the scalar whose JSON is ``text``; ``None`` if there is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, bool | int | float | str):
        return None
    return value if json.dumps(value) == text else None


def as_json(values: Mapping[str, object]) -> dict[str, str]:
    """Encode values like the SDK's framework estimators."""
    return {str(name): json.dumps(value) for name, value in values.items()}


def as_text(values: Mapping[str, object]) -> dict[str, str]:
    """Encode values like the SDK's generic estimator."""
    return {str(name): str(value) for name, value in values.items()}
