"""``orchestrate render``, ``graph``, ``lock`` and ``schema``: text, written or compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.backends import layout
from orchestration.cli.commands.delivery import deliver, deliver_picture
from orchestration.cli.commands.reading.python_files import built_by
from orchestration.cli.naming import Named, named, stage_modules
from orchestration.cli.output import FAILED, note, require
from orchestration.errors import PipelineError, Problem, UnsupportedError

if TYPE_CHECKING:
    from orchestration.graph import Workflow
    from orchestration.pipeline import Pipeline
    from orchestration.pipeline.pinning.in_python import Built


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
            from orchestration.backends import airflow, origins

            return airflow.to_json(airflow.render(workflow), origins.texts(workflow.origin))


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
    as_json: bool = False,
) -> None:
    """Write an artefact, or compare it with a file; of a state machine also as a ``fragment``."""
    if fragment is not None and artefact is not Artefact.STEP_FUNCTIONS:
        raise typer.BadParameter("only step-functions has fragments", param_hint="--fragment")
    which = named(pipeline)
    loaded = which.load()
    workflow = loaded.lower() if artefact is Artefact.COMPANION else loaded.carried()
    warnings: list[str] = []
    if artefact is Artefact.COMPANION:
        text = _companion(workflow)
    elif fragment is not None:
        text = _fragment(workflow, fragment)
    else:
        backend = Backend(artefact.value)
        is_machine = backend is Backend.STEP_FUNCTIONS
        text, warnings = (
            _state_machine(workflow) if is_machine else (rendered(backend, workflow), [])
        )
        warnings += map(str, warnings_of([backend], workflow))
    warnings += which.stale_warnings()
    warn(warnings)
    option = "" if fragment is None else f" --fragment {fragment}"
    again = f"orchestrate render {artefact.value} {pipeline}{option} -o {output}"
    content = json.loads(text) if as_json else None
    deliver(text, output, check=check, again=again, content=content, warnings=warnings)


def _state_machine(workflow: Workflow) -> tuple[str, list[str]]:
    """Return a definition with the pipeline's file in it, and why it does not hold that."""
    from orchestration.backends import origins, stepfunctions

    definition = stepfunctions.render(workflow)
    return stepfunctions.dumps(definition), list(origins.lacking(definition, workflow))


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


def graph(
    pipeline: str,
    form: Format | None,
    output: Path | None,
    *,
    check: bool,
    as_json: bool = False,
) -> None:
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
        deliver_picture(raster.png(text), output, check=check, again=again, as_json=as_json)
    else:
        content = text if as_json else None
        deliver(text, output, check=check, again=again, content=content)


def _drawn(loaded: Pipeline, form: Format) -> str:
    """Return the text of a picture; that of a PNG is SVG."""
    from orchestration.backends import picture
    from orchestration.pipeline.showing import drawing

    if form in (Format.SVG, Format.PNG):
        kinds = {stage.name: getattr(stage, "kind", "") for stage in loaded.every_stage}
        return drawing.svg(drawing.boxes(loaded.every_stage, kinds), loaded.name) + "\n"
    draw = picture.mermaid if form is Format.MERMAID else picture.dot
    return draw(loaded.lower())


def lock(pipeline: str, *, check: bool, as_json: bool = False) -> list[str]:
    """Write a pipeline's lock file, or compare it; return what is warned of.

    Of a Python file they are those of all pipelines that it builds.
    """
    from orchestration.pipeline import files
    from orchestration.pipeline.pinning.lock_file import lock_path

    built = _built(pipeline)
    warnings: list[str] = []
    if built is None:
        path = Path(pipeline)
        text, warnings = lock_text(path, files.lock(path))
        texts = {lock_path(path): text}
    else:
        texts = {_from_here(each.lock): layout.laid_out(each.content()) for each in built}
    if as_json and len(texts) > 1:
        names = ", ".join(path.name for path in texts)
        message = f"is about one lock file, and {pipeline} has {names}; name one MODULE:ATTRIBUTE"
        raise typer.BadParameter(message, param_hint="--json")
    again = f"orchestrate lock {pipeline}"
    failed = False
    for path, text in texts.items():
        content = json.loads(text) if as_json else None
        try:
            deliver(text, path, check=check, again=again, content=content, warnings=warnings)
        except typer.Exit:
            failed = True
    if failed:
        raise typer.Exit(FAILED)
    return warnings


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _built(pipeline: str) -> list[Built] | None:
    """Return the pipelines of Python that are named; ``None`` for a YAML file."""
    if Path(pipeline).suffix == ".py" and Path(pipeline).is_file():
        return built_by(Path(pipeline))
    which = named(pipeline)
    if which.path is not None:
        return None
    built = which.load().built()
    if built is None or built.file is None:
        raise typer.BadParameter(
            f"{pipeline} is not built by Pipeline(…) in a Python file; lock its YAML file",
            param_hint="PIPELINE",
        )
    return [built]


def lock_text(path: Path, content: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the text of a lock file, with what it is rendered to; warns where that can't be."""
    from orchestration.backends import locking

    refused: PipelineError | UnsupportedError | None
    try:
        stages = stage_modules(path.parent)
        content, refused = locking.with_renderings(path, content, stages=stages)
    except PipelineError as error:
        refused = error
    if refused is None:
        return layout.laid_out(content), []
    why = f"the lock file holds no DAG, since {path} can't be rendered for Airflow:\n{refused}"
    warn([why])
    return layout.laid_out(content), [why]


def schema(output: Path | None, *, check: bool, as_json: bool = False) -> None:
    """Write the JSON Schema of pipeline files, or compare it with a file."""
    from orchestration.cli.schema import pipeline_schema
    from orchestration.stages.kinds import Kinds

    kinds = Kinds.of(stage_modules())
    content = pipeline_schema(kinds)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    again = f"orchestrate schema -o {output}"
    deliver(text, output, check=check, again=again, content=content if as_json else None)


def locked(which: Named) -> None:
    """Warn on standard error if a lock file is older than the code."""
    warn(which.stale_warnings())


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        note(f"warning: {warning}")
