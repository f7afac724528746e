"""``orchestrate render``, ``graph``, ``lock`` and ``schema``: text, written or compared."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.naming import Named, named, stage_modules
from orchestration.cli.output import FAILED, colored_diff, note, require
from orchestration.errors import PipelineError, Problem, UnsupportedError

if TYPE_CHECKING:
    from orchestration.graph import Workflow
    from orchestration.pipeline import Pipeline


class Backend(StrEnum):
    """A backend that runs pipelines."""

    STEP_FUNCTIONS = "step-functions"
    AIRFLOW = "airflow"


class Artefact(StrEnum):
    """A file that a pipeline is rendered to."""

    STEP_FUNCTIONS = "step-functions"
    COMPANION = "companion"
    AIRFLOW = "airflow"


class Driver(StrEnum):
    """A backend that runs pipelines."""

    DIRECT = "direct"
    STEP_FUNCTIONS = "step-functions"
    AIRFLOW = "airflow"


class Format(StrEnum):
    """A format of pictures."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    PNG = "png"


BACKENDS = tuple(Backend)
_SUFFIXES = {".dot": Format.DOT, ".gv": Format.DOT, ".svg": Format.SVG, ".png": Format.PNG}


def rendered(backend: Backend, workflow: Workflow) -> str:
    """Render the artefact of a backend as a file's text."""
    match backend:
        case Backend.STEP_FUNCTIONS:
            from orchestration.backends import stepfunctions

            return stepfunctions.dumps(stepfunctions.render(workflow))
        case Backend.AIRFLOW:
            from orchestration.backends import airflow

            return airflow.to_json(airflow.render(workflow))


def warnings_of(backends: Sequence[Backend], workflow: Workflow) -> list[Problem]:
    """Return what is not known to work on a backend."""
    from orchestration.backends import stepfunctions
    from orchestration.backends.airflow import rendering

    return [
        *(rendering.warnings(workflow) if Backend.AIRFLOW in backends else []),
        *(stepfunctions.warnings(workflow) if Backend.STEP_FUNCTIONS in backends else []),
    ]


def render(
    artefact: Artefact,
    pipeline: str,
    output: Path | None,
    *,
    check: bool,
    fragment: str | None = None,
) -> None:
    """Write an artefact, or compare it with a file; of a state machine also as a ``fragment``."""
    if fragment is not None and artefact is not Artefact.STEP_FUNCTIONS:
        raise typer.BadParameter("only step-functions has fragments", param_hint="--fragment")
    which = named(pipeline)
    workflow = which.load().lower()
    if artefact is Artefact.COMPANION:
        text = _companion(workflow)
    elif fragment is not None:
        text = _fragment(workflow, fragment)
    else:
        backend = Backend(artefact.value)
        text = rendered(backend, workflow)
        for warning in warnings_of([backend], workflow):
            note(f"warning: {warning}")
    locked(which)
    option = "" if fragment is None else f" --fragment {fragment}"
    again = f"orchestrate render {artefact.value} {pipeline}{option} -o {output}"
    deliver(text, output, check=check, again=again)


def _fragment(workflow: Workflow, prefix: str) -> str:
    from orchestration.backends import stepfunctions
    from orchestration.backends.stepfunctions.embedding import fragment

    return stepfunctions.dumps(fragment(workflow, prefix))


def _companion(workflow: Workflow) -> str:
    from orchestration.backends import companion, stepfunctions

    definition = companion.render(workflow)
    if definition is None:
        raise UnsupportedError(f"pipeline {workflow.name} leaves nothing, and needs no companion")
    return stepfunctions.dumps(definition)


def graph(pipeline: str, form: Format | None, output: Path | None, *, check: bool) -> None:
    """Draw a pipeline: its steps, or as SVG and PNG its stages."""
    from orchestration.pipeline.showing import raster

    chosen = form or _SUFFIXES.get("" if output is None else output.suffix, Format.MERMAID)
    if chosen is Format.PNG:
        if output is None:
            raise typer.BadParameter("needs a file: -o FILE", param_hint="--format png")
        require(raster.MODULES, what="drawing PNG pictures")
    text = _drawn(named(pipeline).load(), chosen)
    option = "" if form is None else f" --format {form.value}"
    again = f"orchestrate graph {pipeline}{option} -o {output}"
    if chosen is Format.PNG and output is not None:
        _deliver_picture(raster.png(text), output, check=check, again=again)
    else:
        deliver(text, output, check=check, again=again)


def _drawn(loaded: Pipeline, form: Format) -> str:
    """Return the text of a picture; that of a PNG is SVG."""
    from orchestration.backends import picture
    from orchestration.pipeline.showing import drawing

    if form in (Format.SVG, Format.PNG):
        kinds = {stage.name: getattr(stage, "kind", "") for stage in loaded.every_stage}
        return drawing.svg(drawing.boxes(loaded.every_stage, kinds), loaded.name) + "\n"
    draw = picture.mermaid if form is Format.MERMAID else picture.dot
    return draw(loaded.lower())


def _deliver_picture(picture: bytes, path: Path, *, check: bool, again: str) -> None:
    """Write a picture to a file, or compare it with one."""
    old = path.read_bytes() if path.is_file() else None
    if old == picture:
        note(f"{path} is fresh")
    elif check:
        note(f"{path} is {'missing' if old is None else 'stale'}; run `{again}`")
        raise typer.Exit(FAILED)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
        note(f"{path} written")


def lock(pipeline: str, *, check: bool) -> None:
    """Write a pipeline's lock file, or compare it."""
    from orchestration.pipeline import files

    which = named(pipeline)
    if which.path is None:
        raise typer.BadParameter(
            "only YAML files pin code; in Python, Source(…) knows the folder's digest, and "
            "`orchestrate plan FILE.py --update` pins plans",
            param_hint="PIPELINE",
        )
    text = lock_text(which.path, files.lock(which.path))
    path = files.lock_path(which.path)
    deliver(text, path, check=check, again=f"orchestrate lock {pipeline}")


def lock_text(path: Path, content: Mapping[str, Any]) -> str:
    """The text of a pipeline's lock file, with what it is rendered to where that can be done."""
    from orchestration.backends import layout, locking

    refused: PipelineError | UnsupportedError | None
    try:
        stages = stage_modules(path.parent)
        content, refused = locking.with_renderings(path, content, stages=stages)
    except PipelineError as error:
        refused = error
    if refused is not None:
        note(f"warning: the lock file holds no DAG, since {path} can't be rendered for Airflow:")
        note(str(refused))
    return layout.laid_out(content)


def schema(output: Path | None, *, check: bool) -> None:
    """Write the JSON Schema of pipeline files, or compare it with a file."""
    from orchestration.cli.schema import pipeline_schema
    from orchestration.stages.kinds import Kinds

    kinds = Kinds.of(stage_modules())
    text = json.dumps(pipeline_schema(kinds), indent=2, ensure_ascii=False) + "\n"
    deliver(text, output, check=check, again=f"orchestrate schema -o {output}")


def locked(which: Named) -> None:
    """Warn on standard error if a lock file is older than the code."""
    for key in which.stale():
        note(f"warning: {key} changed since it was locked; run `orchestrate lock {which}`")


def deliver(text: str, path: Path | None, *, check: bool, again: str) -> None:
    """Print a text, write it to a file, or compare it with one."""
    if path is None:
        if check:
            raise typer.BadParameter("needs a file to compare: -o FILE", param_hint="--check")
        typer.echo(text, nl=not text.endswith("\n"))
        return
    old = _content(path)
    if check:
        _compare(old, text, path, again)
    elif old == text:
        note(f"{path} is fresh")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        note(f"{path} written")


def _compare(old: str | None, new: str, path: Path, again: str) -> None:
    if old == new:
        note(f"{path} is fresh")
        return
    if old is not None:
        lines = difflib.unified_diff(
            old.splitlines(), new.splitlines(), str(path), "as it is now", lineterm=""
        )
        colored_diff(list(lines))
    note(f"{path} is {'missing' if old is None else 'stale'}; run `{again}`")
    raise typer.Exit(FAILED)


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise typer.BadParameter(f"can't read {path}: {error.strerror}", param_hint="-o") from error
