"""Sections of lock files: what a pipeline is rendered to, so that it need not be rendered again.

A digest covers all that rendering read, and what it made: neither an older section nor an edited
one is believed. Reading imports no Pydantic, no YAML and nothing of a backend.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from orchestration.errors import PipelineError

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_RENDERED: Final = {"airflow": "specification", "step_functions": "definition"}
"""The section of each backend, and the name of what was rendered in it."""
# The package itself stands above its floors.
_VERSION: Final[str] = import_module("orchestration").__version__

Section = Literal["airflow", "step_functions"]


def lock_path(path: Path) -> Path:
    """Return the path of a pipeline file's lock file."""
    # As orchestration.pipeline.pinning says it, whose import a DAG file does without.
    return path.with_suffix(".lock.json")


def with_sections(
    path: Path, content: Mapping[str, Any], pipeline: Pipeline, rendered: Mapping[Section, Any]
) -> dict[str, Any]:
    """Return the content of a YAML file's lock file with what its pipeline is rendered to."""
    from orchestration.pipeline.files import folders, other_files

    read = {
        "version": _VERSION,
        "files": {path.name: digest(path), **other_files(path, content)},
        "folders": folders(path),
        "modules": _modules(pipeline),
    }
    whole = dict(content)
    for name, document in rendered.items():
        section = {**read, _RENDERED[name]: document}
        whole[name] = {"digest": covering({**content, name: section}, name), **section}
    return whole


def text(path: Path, name: Section) -> str | None:
    """Return what ``orchestrate render`` prints of a YAML file, from the lock file.

    None where rendering might make something else of it, or has something to say besides.
    """
    try:
        content = json.loads(lock_path(path).read_bytes())
        section = content[name]
        rendered = section[_RENDERED[name]]
        if section["modules"] or any(changes(path, content, name)) or _moved(path, content, name):
            return None
    except (AttributeError, KeyError, OSError, PipelineError, TypeError, ValueError):
        return None
    from orchestration.backends.layout import indented, laid_out

    if name == "step_functions":
        return indented(rendered)
    origin = _origin(path, content)
    return laid_out({**rendered, "origin": origin}) if origin else None


def _origin(path: Path, content: Mapping[str, Any]) -> list[str]:
    """Return the texts of the pipeline's files, which the definition of the lock file carries."""
    from orchestration.backends.origins import parts

    name: Section = "step_functions"
    if name not in content or any(changes(path, content, name)):
        return []
    return parts(content[name][_RENDERED[name]])[1:]


def changes(path: Path, content: Mapping[str, Any], name: Section) -> Iterator[str]:
    """Yield what is no longer as it was when a section was written, the code's folders apart."""
    section = content[name]
    if section["version"] != _VERSION:
        yield f"it was written by version {section['version']}, this is {_VERSION}"
    if path.name not in section["files"]:
        yield f"it does not know {path.name}"
    for file_name, known in section["files"].items():
        file = path.parent / file_name
        # A model's file may be missing, as it may where the YAML is read: its digest is pinned.
        if (file.is_file() or file_name == path.name) and digest(file) != known:
            yield f"{file_name} changed"
    for module, known in section["modules"].items():
        if not known or _code(module) != known:
            yield f"the code of {module} changed"
    if section["digest"] != covering(content, name):
        yield "its content was edited"


def _moved(path: Path, content: Mapping[str, Any], name: Section) -> bool:
    """Return whether a file is missing, or the code in a folder is not what it was."""
    from orchestration.stages import packing
    from orchestration.stages.relative import absolute

    section = content[name]
    if not all((path.parent / file).is_file() for file in section["files"]):
        return True
    for key, folder in section["folders"].items():
        place = path.parent / folder["path"]
        known = content["sources"].get(key, folder["sha256"])
        packed = {
            "runtime": folder["runtime"],
            "include": folder["include"],
            "dependencies": [absolute(path.parent / each) for each in folder["dependencies"]],
        }
        # Without its folder a pipeline is rendered with the digest that is locked.
        if place.exists() and packing.digest(place, **packed) != known:
            return True
    return False


def covering(content: Mapping[str, Any], name: Section) -> str:
    """Return the digest of a section, and of what else counts in its lock file."""
    section = {key: value for key, value in content[name].items() if key != "digest"}
    # The order of tasks, states and steps counts, so the keys stay as they stand.
    whole = json.dumps([content["sources"], content.get("plans", {}), section])
    return hashlib.sha256(whole.encode()).hexdigest()


def digest(path: Path) -> str:
    """Return the digest of a file's bytes."""
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
        total.update(f"{file.relative_to(package)}\0{digest(file)}\n".encode())
    return total.hexdigest()
