"""``run.yaml``: the pipeline, parameters and uploads of runs on this machine, written down once.

.. code-block:: yaml

    pipeline: churn.yaml
    parameters: {bucket: workspace, data: s3://incoming/churn}
    uploads: {data/*.csv: s3://incoming/churn/}

It lies beside the pipeline, and paths in it are relative to it. A command line that gives a
parameter takes precedence, and so do its uploads to the same URIs. Runs in an account at AWS do not
read it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import typer

from orchestration.cli import values
from orchestration.errors import PipelineError, Problem, near
from orchestration.execution.parameters import names_bucket
from orchestration.graph import ParameterSpec, ParameterValue

NAME: Final = "run.yaml"
_FIELDS: Final = ("pipeline", "parameters", "uploads")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


class RunFileError(PipelineError):
    """A file with what runs are given is not valid."""

    headline = f"{NAME} is not valid"

    def __init__(self, problems: Iterable[Problem | str]) -> None:
        """Take problems whose fields are paths in the file."""
        super().__init__(problems)
        if len(self.problems) == 1:
            self.args = (f"{NAME}: {self.problems[0]}",)


@dataclass(frozen=True, slots=True)
class RunFile:
    """Parameters and uploads of a run, and the pipeline of a folder."""

    pipeline: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    uploads: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders, by the S3 URI that they go to."""

    def __bool__(self) -> bool:
        return bool(self.parameters or self.uploads)

    def without(self, names: Container[str]) -> RunFile:
        """Leave out parameters, of a pipeline of which only a part is run."""
        kept = {name: value for name, value in self.parameters.items() if name not in names}
        return replace(self, parameters=kept)

    def parameters_of(self, specs: Sequence[ParameterSpec]) -> dict[str, ParameterValue]:
        """Return the parameters of a pipeline; those that it lacks, or of other types, are errors.

        Raises :class:`RunFileError` with all of them.
        """
        known = {spec.name: spec for spec in specs}
        problems = []
        for name, value in self.parameters.items():
            path = f"parameters.{name}"
            if name not in known:
                problems.append(Problem(path, f"unknown parameter{near(name, known)}"))
            elif not _is_a(known[name].type, value):
                message = f"expected a {known[name].type}, got {value!r:.60}"
                problems.append(Problem(path, message))
        if problems:
            raise RunFileError(problems)
        return dict(self.parameters)


def beside(pipeline: Path | None) -> RunFile:
    """Return what the file beside a pipeline gives; nothing if there is none.

    Raises :class:`RunFileError` with all mistakes in it.
    """
    path = (Path() if pipeline is None else pipeline.parent) / NAME
    return load(path) if path.is_file() else RunFile()


def pipeline_here(*, or_the_only_one: bool = False) -> str:
    """Return the pipeline that the file in this folder names; a usage error if it names none.

    ``or_the_only_one``: or that of a folder which has one alone. Nothing starts by that.
    """
    named = beside(None).pipeline
    if named is None:
        found = [path for path in sorted(Path().glob("*.y*ml")) if _is_pipeline(path)]
        if or_the_only_one and len(found) == 1:
            return str(found[0])
        raise typer.BadParameter(
            f"is missing; name a pipeline, or write it into {NAME}: `pipeline: digits.yaml`",
            param_hint="PIPELINE",
        )
    return named


def _is_pipeline(path: Path) -> bool:
    """Return whether a file looks like a pipeline, right or wrong."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return bool(re.search(r"(?m)^stages:", text))


def load(path: Path) -> RunFile:
    """Read a file; a :class:`RunFileError` has all mistakes in it."""
    from orchestration.pipeline.yaml import load as load_yaml

    data = load_yaml(path)
    uploads: dict[str, Path] = {}
    problems = [*_misshapen(data), *_uploaded(data.get("uploads"), path.parent, uploads)]
    if problems:
        raise RunFileError(problems)
    return RunFile(data.get("pipeline"), data.get("parameters") or {}, uploads)


def _misshapen(data: Mapping[str, Any]) -> Iterator[Problem]:
    for name in data:
        if name not in _FIELDS:
            yield Problem(str(name), f"unknown field{near(str(name), _FIELDS)}")
    if not isinstance(data.get("pipeline"), str | None):
        yield Problem("pipeline", "expected the path of a pipeline's file")
    if not isinstance(data.get("parameters"), dict | None):
        yield Problem("parameters", "expected a mapping from names to values")


def _uploaded(data: object, folder: Path, uploads: dict[str, Path]) -> Iterator[Problem]:
    if not isinstance(data, dict | None):
        yield Problem("uploads", "expected a mapping from files to S3 URIs")
        return
    for local, uri in (data or {}).items():
        if not isinstance(uri, str) or not names_bucket(uri):
            yield Problem(f"uploads.{local}", f"expected s3://bucket/key, got {uri!r:.60}")
            continue
        for message in values.add_upload(uploads, str(local), uri, folder):
            yield Problem(f"uploads.{local}", message)


def _is_a(kind: str, value: object) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
