"""Settings that a pipeline or a stage gives its tasks, as a specification holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import Problem
from orchestration.expressions import Json

Options = Mapping[str, Json]

SECONDS: Final[Mapping[str, str]] = {
    "retry_delay_s": "retry_delay",
    "max_retry_delay_s": "max_retry_delay",
    "execution_timeout_s": "execution_timeout",
}
"""Airflow's names for those in seconds."""
CALLBACKS: Final = ("on_failure_callback", "on_success_callback", "on_retry_callback")
"""Those that are lists of callables' dotted names."""
OUTLETS: Final = "outlets"
KNOWN: Final = frozenset(
    {
        *SECONDS,
        *CALLBACKS,
        OUTLETS,
        "executor",
        "owner",
        "pool",
        "pool_slots",
        "priority_weight",
        "queue",
        "retries",
        "retry_exponential_backoff",
        "weight_rule",
    }
)
"""The fields of :class:`~orchestration.stages.options.AirflowOptions`."""


def problems(options: Any, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the settings in a specification."""
    for name, value in options.items():
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if name not in KNOWN:
            yield Problem(path, f"unknown setting {name!r:.60}")
        elif is_list != (name in (*CALLBACKS, OUTLETS)) or value is None or isinstance(value, dict):
            yield Problem(f"{path}.{name}", f"unexpected value {value!r:.60}")
