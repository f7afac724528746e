"""The rendered specification in a lock file: a DAG file reads it instead of its YAML."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from orchestration.backends.airflow.spec import DagSpec, from_document
from orchestration.backends.airflow.vetting import problems
from orchestration.backends.locks import changes, lock_path
from orchestration.errors import PipelineError, Problem


@dataclass(frozen=True, slots=True)
class Stale:
    """Why the specification in a lock file does not count."""

    reason: str


def specification(path: Path) -> DagSpec | Stale:
    """Return the specification in a YAML file's lock file, or why it does not count.

    Raises :class:`PipelineError` where it names what no pipeline is rendered to.
    """
    lock = lock_path(path)
    try:
        content = json.loads(lock.read_bytes())
        document = content["airflow"]["specification"]
        changed = list(changes(path, content, "airflow"))
    except FileNotFoundError as error:
        return Stale(f"{Path(error.filename).name} is missing")
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return Stale(f"{lock.name} holds no rendered DAG")
    if changed:
        return Stale(f"{lock.name} is stale: {', '.join(changed)}")
    if wrong := list(problems(document)):
        raise PipelineError([Problem(lock.name, str(problem)) for problem in wrong])
    return from_document(document)
