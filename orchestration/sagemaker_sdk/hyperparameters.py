"""An estimator's hyperparameters: what a training job names, and what goes beside it as it is."""

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
"""What script mode adds itself, to the estimator too once it was fitted."""

Split = tuple[dict[str, Any], dict[str, str]]
"""Hyperparameters of the job, and those for its ``extra_request``."""


def split(sent: Mapping[str, str], *, encoded: bool) -> Split:
    """Values that give the text which the SDK sends; ``encoded``: the job encodes as JSON."""
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
    """The scalar whose JSON is ``text``; ``None`` where there is none."""
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
    """As the SDK's framework estimators encode them."""
    return {str(name): json.dumps(value) for name, value in values.items()}


def as_text(values: Mapping[str, object]) -> dict[str, str]:
    """As the SDK's generic estimator sends them."""
    return {str(name): str(value) for name, value in values.items()}
