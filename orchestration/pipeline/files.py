"""Pipelines in YAML files, and the lock files beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import PipelineError, Problem, near
from orchestration.pipeline import plans
from orchestration.stages.packing import contents, digest

if TYPE_CHECKING:
    from orchestration.planning.search.plans import Plans


def read(path: Path) -> tuple[dict[str, Any], list[Problem]]:
    """The data of a YAML file with the digests of its folders filled in, and what is wrong there.

    A digest comes from the lock file where there is one, so that reading needs no folder; else from
    the folder itself.
    """
    from orchestration.pipeline.yaml import load

    data = load(path)
    locked = _lock(path)
    found = plans.settle(data, path.parent, locked.plans)
    for key, source, field in _sources(data):
        given = source[field]
        place = (path.parent / given).resolve()
        source[field] = str(place)
        if field == "directory" and place.is_file():
            message = f"{given} is a file; give the folder that holds it"
            found.append(Problem(f"stages.{key}.directory", message))
        elif place.exists():
            try:
                names = contents(place, runtime=_runtime(source))
            except PipelineError as error:
                found += _at(f"stages.{key}.{field}", error)
                source.pop("runtime", None)  # so that the folder has a digest
            else:
                found += _entry(f"stages.{key}", given, names, source["entry_point"])
        if "sha256" in source:
            continue
        if key in locked.sources:
            source["sha256"] = locked.sources[key]
        elif place.exists():
            source["sha256"] = digest(place, runtime=_runtime(source))
    return data, found


def _at(path: str, error: PipelineError) -> Iterator[Problem]:
    for problem in error.problems:
        yield Problem(path, problem.message)


def _entry(path: str, given: str, names: list[str], entry_point: object) -> Iterator[Problem]:
    if isinstance(entry_point, str) and entry_point not in names:
        yield Problem(
            f"{path}.entry_point", f"{given} holds no {entry_point!r}{near(entry_point, names)}"
        )


def _runtime(source: Mapping[str, object]) -> bool:
    return source.get("runtime") is True


def lock_path(path: Path) -> Path:
    """Where a pipeline file's lock file lies: ``digits.lock.json`` beside ``digits.yaml``."""
    return path.with_suffix(".lock.json")


def lock(path: Path) -> dict[str, Any]:
    """Build the lock file's content from the folders as they are now, and keep its plans."""
    from orchestration.pipeline.yaml import load

    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for key, source, field in _sources(load(path)):
        if "sha256" in source:
            continue
        place, where = path.parent / source[field], f"stages.{key}.{field}"
        if not place.exists():
            what = "folder" if field == "directory" else "file"
            problems.append(Problem(where, f"there is no {what} {source[field]}"))
            continue
        try:
            digests[key] = digest(place, runtime=_runtime(source))
        except PipelineError as error:
            problems += _at(where, error)
    if problems:
        raise PipelineError(problems)
    return document(digests, _lock(path).plans)


def document(digests: Mapping[str, str], pins: Mapping[str, plans.Pinned]) -> dict[str, Any]:
    """The content of a lock file."""
    content: dict[str, Any] = {"sources": dict(sorted(digests.items()))}
    return content | ({"plans": dict(sorted(pins.items()))} if pins else {})


def planned(path: Path) -> tuple[dict[str, Plans], dict[str, Any]]:
    """What the planner finds for a file's stages, and the lock file that pins what it chose."""
    from orchestration.pipeline.yaml import load

    found, pins = plans.pins(load(path), path.parent)
    # A first lock file pins the code, too; later ones leave that to `orchestrate lock`.
    digests = _lock(path).sources if lock_path(path).exists() else lock(path)["sources"]
    return found, document(digests, pins)


def stale(path: Path) -> list[str]:
    """The folders of code that changed since the lock file was written, by stage and field."""
    if not lock_path(path).exists():
        return []
    now, then = lock(path)["sources"], _lock(path).sources
    return sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))


@dataclass(frozen=True, slots=True)
class _Locked:
    sources: Mapping[str, str]
    """Digests of code, by stage and field."""
    plans: Mapping[str, plans.Pinned]
    """What the planner picked, by stage."""


def _lock(path: Path) -> _Locked:
    lock_file = lock_path(path)
    if not lock_file.exists():
        return _Locked({}, {})
    try:
        content = json.loads(lock_file.read_text(encoding="utf-8"))
        digests, pins = content["sources"], content.get("plans", {})
    except (ValueError, KeyError, TypeError, AttributeError):
        digests, pins = None, None
    readable = isinstance(digests, dict) and isinstance(pins, dict)
    if not readable or not all(map(plans.is_pinned, pins.values())):
        message = (
            f"is no lock file; remove it, and write it again: `orchestrate lock {path.name}`, or "
            f"`orchestrate plan {path.name} --update` where it held a plan"
        )
        raise PipelineError([Problem(lock_file.name, message)])
    return _Locked(digests, pins)


def _sources(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """What names code on this machine: where it stands, itself, and its field with the path."""
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
                    for place in ("directory", "archive"):
                        if isinstance(value.get(place), str):
                            yield f"{name}.{field}", value, place
