"""Paths on this machine that stages name: of code, stand-ins, cases and models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestration.pipeline.afterwards.sections import SECTIONS
from orchestration.pipeline.defaults.merging import DEFAULTS

Data = dict[str, Any]
Change = Callable[[str], str]


def with_paths(stage: Data, change: Change) -> Data:
    """Return a stage, or defaults of stages, with each path changed."""
    placed = {str(name): _of_code(str(name), value, change) for name, value in stage.items()}
    if "local" in placed:
        placed["local"] = _changed(placed["local"], change, "directory")
    if isinstance(placed.get("transform"), dict):
        placed["transform"] = with_paths(placed["transform"], change)
    update = placed.get("update")
    if isinstance(update, dict) and "trial" in update:
        placed["update"] = {**update, "trial": _changed(update["trial"], change, "cases")}
    strategy = placed.get("strategy")
    if isinstance(strategy, dict) and isinstance(strategy.get("model"), dict):
        model = _changed(strategy["model"], change, "config")
        placed["strategy"] = {**strategy, "model": model}
    return placed


def _of_code(field: str, value: Any, change: Change) -> Any:
    """Return the value of a field with the paths of code in it changed, also of those in lists."""
    if isinstance(value, list):
        return [with_paths(each, change) if isinstance(each, dict) else each for each in value]
    if isinstance(value, dict) and ("entry_point" in value or field == "source"):
        return _changed(value, change, "directory", "archive", "dependencies")
    return value


def _changed(content: Any, change: Change, *keys: str) -> Any:
    if not isinstance(content, dict):
        return content
    given = {key: content[key] for key in keys if key in content}
    return {**content, **{key: _path(value, change) for key, value in given.items()}}


def _path(value: Any, change: Change) -> Any:
    if isinstance(value, list):
        return [_path(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


def without_machine(given: Mapping[str, Any], directory: Path | None = None) -> Data:
    """Return a file's data as it may go elsewhere: absolute paths tell of this machine alone.

    A place below the file's directory is named from there, and any other by the last of its names.
    """
    below = None if directory is None else Path(os.path.abspath(directory))

    def told(path: str) -> str:
        if not Path(path).is_absolute():
            return path
        place = Path(os.path.normpath(path))
        if below is None or below not in place.parents:
            return place.name
        return place.relative_to(below).as_posix()

    return _in_all_stages(given, told)


def _in_all_stages(given: Mapping[str, Any], change: Change) -> Data:
    def changed(stage: Any) -> Any:
        return with_paths(stage, change) if isinstance(stage, dict) else stage

    written = dict(given)
    for section in (*SECTIONS, DEFAULTS):
        stages = given.get(section)
        if isinstance(stages, dict):
            written[section] = {name: changed(stage) for name, stage in stages.items()}
        elif isinstance(stages, list):
            written[section] = [changed(stage) for stage in stages]
    return written
