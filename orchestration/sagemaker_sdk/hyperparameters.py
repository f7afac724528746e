"""An estimator's hyperparameters: a training job's own, and those of its ``extra_request``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from orchestration.sagemaker_sdk.findings import Findings

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
    """Encode values like the SDK's framework estimators; those of NumPy as Python's.

    Raises TypeError for values that JSON has no form for.
    """
    return {str(name): json.dumps(value, default=_plain) for name, value in values.items()}


def checked(values: Mapping[str, object], findings: Findings) -> dict[str, object]:
    """Return the values that JSON has a form for, and report the others."""
    fine = {}
    for name, value in values.items():
        try:
            as_json({name: value})
        except (TypeError, ValueError) as error:
            findings.add(
                f"hyperparameters.{name}", f"{value!r} has no form in JSON ({error}); convert it"
            )
        else:
            fine[name] = value
    return fine


def _plain(value: Any) -> Any:
    """Convert a scalar or an array of NumPy, or a path; called by ``json`` for what it lacks."""
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"it is a {type(value).__name__}")


def as_text(values: Mapping[str, object]) -> dict[str, str]:
    """Encode values like the SDK's generic estimator."""
    return {str(name): str(value) for name, value in values.items()}
