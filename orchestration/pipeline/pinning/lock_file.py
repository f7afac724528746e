"""Lock files: the digests and plans that they pin, and their paths.

A rendered pipeline in one is the business of ``orchestration.backends.locks``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline import plans


@dataclass(frozen=True, slots=True)
class Locked:
    """Digests and plans that a lock file pins."""

    sources: Mapping[str, str]
    """Digests of code, by stage and field."""
    plans: Mapping[str, plans.Pinned]
    """The planner's picks, by stage."""
    python: str | None = None
    """The Python file whose pipeline it is; ``None`` for that of a YAML file."""


NOTHING = Locked({}, {})
"""The pins of a pipeline without a lock file."""


def lock_path(path: Path) -> Path:
    """Return the lock file of a pipeline file: ``digits.lock.json`` beside ``digits.yaml``."""
    return path.with_suffix(".lock.json")


def yaml_of(lock_file: Path) -> Path | None:
    """Return the YAML file that a lock file belongs to; ``None`` where there is none."""
    name = lock_file.name.removesuffix(".lock.json")
    files = [lock_file.with_name(f"{name}{suffix}") for suffix in (".yaml", ".yml")]
    return next((file for file in files if file.exists()), None)


def read(lock_file: Path, of: Path) -> Locked:
    """Return what the lock file of a YAML or Python file pins; nothing without one.

    Raises :class:`PipelineError` for one of a pipeline in Python that a YAML file would have too.
    """
    if not lock_file.exists():
        return NOTHING
    try:
        found = parsed(json.loads(lock_file.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = (
            "is not a lock file; remove it, and write it again: "
            f"`orchestrate lock {of.name}`, or "
            f"`orchestrate plan {of.name} --update` where it held a plan"
        )
        raise PipelineError([Problem(lock_file.name, message)]) from error
    if found.python is not None and (yaml := yaml_of(lock_file)) is not None:
        raise PipelineError([Problem(lock_file.name, _shared(found.python, yaml))])
    return found


def _shared(python: str, yaml: Path) -> str:
    return (
        f"pins the pipeline of {python}, and {yaml.name} beside it would have the same lock file; "
        f"give the two different names, or delete {yaml.name}"
    )


def parsed(content: Mapping[str, Any]) -> Locked:
    """Return what the content of a lock file pins; ``ValueError`` and the like if it is none."""
    digests, pins = content["sources"], content.get("plans", {})
    readable = isinstance(digests, dict) and isinstance(pins, dict)
    if not readable or not all(map(plans.is_pinned, pins.values())):
        raise ValueError("not what a lock file holds")
    return Locked(digests, pins, content.get("python"))


def document(digests: Mapping[str, str], pins: Mapping[str, plans.Pinned]) -> dict[str, Any]:
    """Return the content of a lock file."""
    content: dict[str, Any] = {"sources": dict(sorted(digests.items()))}
    return content | ({"plans": dict(sorted(pins.items()))} if pins else {})


def changed(now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    """Return the code whose digest is not what it was, by stage and field."""
    return sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
