"""Descriptions of pipelines that were made of something else, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.pipeline.yaml import dumped
from orchestration.refs import Expression, written


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the pipeline does otherwise than what it was made of."""

    path: str
    """A path into the user's file: ``InputDataConfig[0].ContentType``."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Imported:
    """A description, as a YAML file holds it, with the notes on it."""

    description: Mapping[str, Any]
    notes: tuple[Note, ...]

    def yaml(self) -> str:
        """Return the description as YAML."""
        return dumped(self.description)


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[Note]:
    """Yield where a request of the pipeline is not the one that it was made of."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            where = f"{path}.{key}" if path else str(key)
            if key not in ours:
                yield Note(where, f"is not in the pipeline's request: {_said(theirs[key])!r}")
            elif key not in theirs:
                yield Note(where, f"is added by the pipeline: {_said(ours[key])!r}")
            else:
                yield from differences(theirs[key], ours[key], where)
    elif _is_list(theirs) and _is_list(ours) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif theirs != ours:
        own = _said(ours)
        known = "what only a run knows" if isinstance(own, Expression) else repr(own)
        yield Note(path, f"is {_said(theirs)!r}, and {known} in the pipeline's request")


def _said(value: Any) -> Any:
    """Return a value of a request as a pipeline's file says it, where there is a form for it."""
    if isinstance(value, Mapping):
        return {key: _said(item) for key, item in value.items()}
    if _is_list(value):
        return [_said(item) for item in value]
    if not isinstance(value, Expression):
        return value
    try:
        return written(value)
    except ValueError:
        return value


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
