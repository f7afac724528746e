"""Pipelines in YAML files, and the lock files beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestration.errors import PipelineError, Problem, near
from orchestration.stages.packing import digest, files


def read(path: Path) -> tuple[dict[str, Any], list[Problem]]:
    """The data of a YAML file with the digests of its folders filled in, and what is wrong there.

    A digest comes from the lock file where there is one, so that reading needs no folder; else from
    the folder itself.
    """
    from orchestration.pipeline.yaml import load

    data = load(path)
    locked = _lock(path)
    found: list[Problem] = []
    for key, source in _sources(data):
        directory = source.get("directory")
        if not isinstance(directory, str):
            continue
        folder = (path.parent / directory).resolve()
        source["directory"] = str(folder)
        if folder.is_dir():
            found += _entry(f"stages.{key}", folder, directory, source["entry_point"])
        if "sha256" in source:
            continue
        if key in locked:
            source["sha256"] = locked[key]
        elif folder.is_dir():
            source["sha256"] = digest(folder)
    return data, found


def _entry(path: str, folder: Path, directory: str, entry_point: object) -> Iterator[Problem]:
    names = [name for name, _ in files(folder)]
    if isinstance(entry_point, str) and entry_point not in names:
        yield Problem(
            f"{path}.entry_point", f"{directory} holds no {entry_point!r}{near(entry_point, names)}"
        )


def lock_path(path: Path) -> Path:
    """Where a pipeline file's lock file lies: ``digits.lock.json`` beside ``digits.yaml``."""
    return path.with_suffix(".lock.json")


def lock(path: Path) -> dict[str, dict[str, str]]:
    """What the lock file has to hold by the folders as they are now."""
    from orchestration.pipeline.yaml import load

    digests: dict[str, str] = {}
    missing: list[Problem] = []
    for key, source in _sources(load(path)):
        directory = source.get("directory")
        if isinstance(directory, str) and "sha256" not in source:
            folder = path.parent / directory
            if folder.is_dir():
                digests[key] = digest(folder)
            else:
                missing.append(
                    Problem(f"stages.{key}.directory", f"there is no folder {directory}")
                )
    if missing:
        raise PipelineError(missing)
    return {"sources": dict(sorted(digests.items()))}


def stale(path: Path) -> list[str]:
    """The folders of code that changed since the lock file was written, by stage and field."""
    if not lock_path(path).exists():
        return []
    now, then = lock(path)["sources"], _lock(path)
    return sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))


def _lock(path: Path) -> dict[str, str]:
    lock_file = lock_path(path)
    if not lock_file.exists():
        return {}
    try:
        digests = json.loads(lock_file.read_text(encoding="utf-8"))["sources"]
    except (ValueError, KeyError, TypeError):
        digests = None
    if not isinstance(digests, dict):
        message = f"is no lock file; write it again: `orchestrate lock {path.name}`"
        raise PipelineError([Problem(lock_file.name, message)])
    return digests


def _sources(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    stages = data.get("stages")
    if isinstance(stages, Mapping):
        pairs = list(stages.items())
    elif isinstance(stages, list):
        pairs = [(s.get("name"), s) for s in stages if isinstance(s, dict)]
    else:
        pairs = []
    for name, stage in pairs:
        if isinstance(stage, dict):
            for field, value in stage.items():
                if isinstance(value, dict) and "entry_point" in value:
                    yield f"{name}.{field}", value
