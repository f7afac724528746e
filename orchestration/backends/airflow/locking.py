"""The rendered specification in a lock file: a DAG file reads it instead of its YAML.

A digest covers all that rendering read, and the specification itself: neither an older one nor an
edited one is believed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestration.backends.airflow.spec import DagSpec, from_document, to_document
from orchestration.backends.airflow.vetting import problems
from orchestration.errors import PipelineError, Problem

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.stages.kinds import StageSource

_SECTION: Final = "airflow"
# The package itself stands above its floors.
_VERSION: Final[str] = import_module("orchestration").__version__


@dataclass(frozen=True, slots=True)
class Stale:
    """Why the specification in a lock file does not count."""

    reason: str


def lock_path(path: Path) -> Path:
    """Return the path of a pipeline file's lock file."""
    # As orchestration.pipeline.files says it, whose import a DAG file does without.
    return path.with_suffix(".lock.json")


def with_specification(
    path: Path, content: Mapping[str, Any], *, stages: Iterable[StageSource] = ()
) -> dict[str, Any]:
    """Return the content of a YAML file's lock file with the DAG that both describe.

    ``stages`` are further kinds of stages, as :meth:`~orchestration.Pipeline.load` takes them.
    Raises the errors of loading the YAML, and of :func:`orchestration.backends.airflow.render`.
    """
    from orchestration.backends.airflow.rendering import render
    from orchestration.pipeline import Pipeline
    from orchestration.pipeline.files import other_files

    pipeline = Pipeline.load(path, stages=stages, lock=content)
    section = {
        "version": _VERSION,
        "files": {path.name: _digest(path), **other_files(path, content)},
        "modules": _modules(pipeline),
        "specification": to_document(render(pipeline.lower())),
    }
    locked = {**content, _SECTION: section}
    section = {"digest": _covering(locked), **section}
    return {**content, _SECTION: section}


def specification(path: Path) -> DagSpec | Stale:
    """Return the specification in a YAML file's lock file, or why it does not count.

    Raises :class:`PipelineError` where it names what no pipeline is rendered to.
    """
    lock = lock_path(path)
    try:
        content = json.loads(lock.read_bytes())
        section = content[_SECTION]
        document = section["specification"]
        changed = list(_changed(path, content))
    except FileNotFoundError as error:
        return Stale(f"{Path(error.filename).name} is missing")
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return Stale(f"{lock.name} holds no rendered DAG")
    if changed:
        return Stale(f"{lock.name} is stale: {', '.join(changed)}")
    if wrong := list(problems(document)):
        raise PipelineError([Problem(lock.name, str(problem)) for problem in wrong])
    return from_document(document)


def _changed(path: Path, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is no longer as it was when the lock file was written."""
    section = content[_SECTION]
    if section["version"] != _VERSION:
        yield f"it was written by version {section['version']}, this is {_VERSION}"
    if path.name not in section["files"]:
        yield f"it does not know {path.name}"
    for name, digest in section["files"].items():
        file = path.parent / name
        # A model's file may be missing, as it may where the YAML is read: its digest is pinned.
        if (file.is_file() or name == path.name) and _digest(file) != digest:
            yield f"{name} changed"
    for module, digest in section["modules"].items():
        if not digest or _code(module) != digest:
            yield f"the code of {module} changed"
    if section["digest"] != _covering(content):
        yield "its content was edited"


def _covering(content: Mapping[str, Any]) -> str:
    """Return the digest of a lock file's content, without that digest."""
    section = {key: value for key, value in content[_SECTION].items() if key != "digest"}
    # The order of tasks and steps counts, so the keys stay as they stand.
    text = json.dumps([content["sources"], content.get("plans", {}), section])
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _modules(pipeline: Pipeline) -> dict[str, str]:
    """Return the digests of the code that stages of other packages are made of."""
    own = ("builtins", "orchestration", "pydantic")
    modules = {kind.__module__ for stage in pipeline.every_stage for kind in type(stage).__mro__}
    others = {name for name in modules if name.partition(".")[0] not in own}
    return {name: _code(name) for name in sorted(others)}


def _code(module: str) -> str:
    """Return a digest of a module's file, or of the package it is in; empty where it has none.

    Neither is imported.
    """
    parts = module.split(".")
    spec = None
    for count in range(1, len(parts) + 1):
        try:
            spec = find_spec(".".join(parts[:count]))
        except (ImportError, ValueError):
            return ""
        if spec is None or spec.origin is not None:  # A namespace package has no code.
            break
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return ""
    origin = Path(spec.origin)
    package = origin.parent
    files = sorted(package.rglob("*.py")) if spec.submodule_search_locations else [origin]
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.relative_to(package)}\0{_digest(file)}\n".encode())
    return total.hexdigest()
