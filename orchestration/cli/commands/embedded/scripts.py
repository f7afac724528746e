"""``orchestrate check-script``: one stage's script, alone, as its container starts it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli import run_file, values
from orchestration.cli.commands.rendering import Driver
from orchestration.cli.commands.running import require_driver, terminable
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, note_failure, say
from orchestration.phrases import counted

if TYPE_CHECKING:
    from orchestration.local.scripts.alone import Alone
    from orchestration.local.scripts.reporting import GivenInput, ScriptReport, Written
    from orchestration.stages.endpoints.cases import SmokeTest

_FOLDER = "scripts"
_MOST_NAMES = 8


def check_script(
    pipeline: str,
    stage: str,
    *,
    channels: Sequence[str],
    parameters: Sequence[str],
    uploads: Sequence[str],
    request: str | None,
    content_type: str,
    as_json: bool,
) -> None:
    """Run the script and show what it was given and wrote; exit with 1 if it failed."""
    which = named(pipeline)
    loaded = which.load_with_code_as_it_is()
    specs = loaded.parameter_specs()
    written = run_file.beside(which.path)
    chosen = values.parameters(
        specs,
        parameters,
        filled=[spec.name for spec in specs],
        written=written.parameters_of(specs),
    )
    require_driver(Driver.DIRECT)
    from orchestration.local.run.keeping import home
    from orchestration.local.scripts import check

    with terminable():
        report = check(
            loaded,
            stage,
            folder=home(which.path) / _FOLDER,
            channels=_channels(channels),
            parameters=chosen,
            uploads={**written.uploads, **values.uploads(uploads)},
            request=_request(request, content_type),
            on_inputs=_announce,
        )
    if as_json:
        document(report.to_json())
    else:
        for line in _lines(report):
            say(line)
    for line in report.log:
        note(line)
    if report.state == "failed":
        note_failure(f"{stage} failed", report.error, report.cause)
        raise typer.Exit(FAILED)


def _channels(pairs: Iterable[str]) -> dict[str, Path]:
    channels: dict[str, Path] = {}
    for text in pairs:
        name, equals, path = text.partition("=")
        if not (name and equals and path) or path.startswith("s3://"):
            message = f"expected NAME=FOLDER or NAME=FILE of this machine, got {text!r}"
            raise typer.BadParameter(message, param_hint="--channel")
        channels[name] = Path(path)
    return channels


def _request(text: str | None, content_type: str) -> SmokeTest | None:
    if text is None:
        return None
    from orchestration.stages.endpoints.cases import SmokeTest

    body: Any = text
    if text.startswith("@"):
        try:
            body = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"can't read {text[1:]} as text: {error}"
            raise typer.BadParameter(message, param_hint="--request") from error
    if "json" in content_type.lower():
        try:
            body = json.loads(body)
        except ValueError as error:
            message = f"expected JSON, or another --content-type: {error}"
            raise typer.BadParameter(message, param_hint="--request") from error
    return SmokeTest(request=body, content_type=content_type)


def _announce(alone: Alone, inputs: tuple[GivenInput, ...]) -> None:
    """Say what the script gets, before it starts."""
    stage = alone.stage
    note(f"{stage.name}, a {getattr(stage, 'kind', 'stage')}, alone; it gets:")
    for each in inputs:
        files = counted(each.files, "file")
        note(f"  {each.name}: {each.place} ({files}, {each.size:,} bytes)")
    options: Mapping[str, Any] = getattr(stage, "hyperparameters", {})
    if options:
        note(f"  hyperparameters: {', '.join(f'{k}={v!r}' for k, v in options.items())}")
    variables: Mapping[str, Any] = getattr(stage, "environment", {})
    if variables:
        note(f"  environment: {', '.join(variables)}")
    if hasattr(stage, "smoke_test") and stage.smoke_test is None:
        note("  no request; give one that it must answer: --request '[[1, 2, 3]]'")


def _lines(report: ScriptReport) -> Iterator[str]:
    if report.environment:
        yield "variables, from the training toolkit:"
        yield from (f"  {key}={value:.100}" for key, value in _told(report.environment))
    if report.command:
        yield f"started as: {' '.join(report.command)}"
    for name, value in report.metrics.items():
        yield f"metric {name} = {value:.6g}"
    for name in report.missing_metrics:
        yield f"metric {name}: its regular expression matches nothing that was printed"
    if report.checkpoints:
        yield f"checkpoints: {_few(report.checkpoints)}"
    if report.model:
        yield f"model.tar.gz: {_sized(report.model)}"
    if report.results:
        yield f"results: {_sized(report.results)}"
    for name, content in sorted(report.evaluations.items()):
        yield f"evaluation.json of {name}: {json.dumps(content, ensure_ascii=False):.500}"
    if report.answer is not None:
        yield f"answer: {json.dumps(report.answer, ensure_ascii=False):.500}"
    how = f"{report.stage} {report.state} in {report.duration_s:.1f} s"
    yield f"{how}; logs and results: {report.folder}"


def _told(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that scripts read: of a host's many, those of its job."""
    for key, value in environment.items():
        if key.startswith(("SM_CHANNEL_", "SM_HP_")) or key in _READ:
            yield key, value


_READ = frozenset(["SM_MODEL_DIR", "SM_NUM_GPUS", "SM_OUTPUT_DATA_DIR"])


def _sized(files: Sequence[Written]) -> str:
    return _few([f"{each.path} ({each.size:,} bytes)" for each in files])


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f", and {more} more" if more > 0 else "")
