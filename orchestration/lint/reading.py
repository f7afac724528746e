"""Definitions from files: JSON or YAML, with the keys that stand twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from orchestration.errors import PipelineError
from orchestration.lint.findings import Finding
from orchestration.lint.machines import pointer
from orchestration.pipeline.yaml import TWICE, parsed

LONGEST_DEFINITION: Final = 1_048_576
_NONE: Final = "not-a-state-machine"


def read(text: str, *, is_yaml: bool) -> tuple[Any, list[Finding]]:
    """Return the content of a file, and what is wrong with it as a file."""
    try:
        value = parsed(text, Path()) if is_yaml else json.loads(text, object_pairs_hook=_Pairs)
    except PipelineError as error:
        (problem,) = error.problems
        rule = "duplicate-key" if TWICE in problem.message else _NONE
        return None, [Finding(rule, "", problem.message)]
    except (ValueError, RecursionError) as error:
        return None, [Finding(_NONE, "", f"it cannot be read as JSON: {error}")]
    findings = [*_twice(value, ""), *_whole(value, text)]
    return _plain(value), findings


def _whole(value: Any, text: str) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        yield Finding(_NONE, "", "expected an object with StartAt and States")
    elif "States" not in value and "StartAt" not in value:
        hint = "; lint the definition inside of it" if "Resources" in value else ""
        yield Finding(_NONE, "", f"it has neither StartAt nor States{hint}")
    if len(text) > LONGEST_DEFINITION:
        compact = len(json.dumps(value, separators=(",", ":"), default=str))
        if compact > LONGEST_DEFINITION:
            most = f"a definition has at most {LONGEST_DEFINITION}; move parts into state machines"
            yield Finding("limit", "", f"{compact} characters; {most} of their own")


class _Pairs(dict[str, Any]):
    """An object, with the keys that it has twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = [name for name in self if names.count(name) > 1]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _twice(value: Any, path: str) -> Iterator[Finding]:
    if isinstance(value, _Pairs):
        yield from (_duplicate(path, name) for name in value.twice)
        for name, item in value.items():
            yield from _twice(item, f"{path}/{pointer(name)}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _twice(item, f"{path}/{index}")


def _duplicate(path: str, name: str) -> Finding:
    text = f"{name!r} stands there twice, and only the last counts; rename or remove one"
    return Finding("duplicate-key", f"{path}/{pointer(name)}", text)
