"""``orchestrate import``: a pipeline of what others have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestration.cli.naming import stage_modules
from orchestration.cli.output import document, note, say
from orchestration.errors import PipelineError, Problem
from orchestration.importing import Imported, described, from_dag, from_data
from orchestration.pipeline.yaml import data_of, load

_YAML = (".yaml", ".yml")


def import_(file: Path, name: str | None, output: Path | None, *, as_json: bool) -> None:
    """Print or write the pipeline, and tell what it does otherwise."""
    imported = _imported(file, name)
    if output is not None:
        output.write_text(imported.yaml(), encoding="utf-8")
    if as_json:
        notes = [{"path": each.path, "message": each.message} for each in imported.notes]
        document({"pipeline": dict(imported.description), "notes": notes})
    elif output is None:
        say(imported.yaml().rstrip())
    else:
        say(f"wrote {output}")
    for each in imported.notes:
        note(f"{file}: {each}")


def _imported(file: Path, name: str | None) -> Imported:
    if file.suffix == ".py":
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise PipelineError([Problem(str(file), f"cannot be read: {error}")]) from error
        own = described(source)
        if own is not None:
            data = load(file.parent / own.file)
            return Imported(data if name is None else {**data, "name": name}, own.notes)
        return from_dag(source, name=name, file=file.stem)
    return from_data(_read(file), name=name, file=file.stem, stages=stage_modules(file.parent))


def _read(file: Path) -> dict[str, Any]:
    if file.suffix in _YAML:
        data = data_of(file)
    else:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PipelineError([Problem(str(file), f"cannot be read as JSON: {error}")]) from error
    if not isinstance(data, dict):
        raise PipelineError([Problem(str(file), "expected an object: a request or a definition")])
    return data
