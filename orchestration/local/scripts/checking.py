"""Run one stage's script alone, and say what it was given and what it wrote."""

from __future__ import annotations

import datetime
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestration.errors import ExpressionError, PipelineError, Problem
from orchestration.execution.reading.tracebacks import end_of
from orchestration.expressions import Json, evaluate
from orchestration.expressions.evaluate import Values, run_token
from orchestration.local.run.keeping import keep, logged
from orchestration.local.run.pipelines import run
from orchestration.local.run.preparation import objects
from orchestration.local.sagemaker import archive
from orchestration.local.scripts import reporting
from orchestration.local.scripts.alone import BUCKET, Alone, alone
from orchestration.local.scripts.inputs import wants_archive
from orchestration.local.scripts.reporting import GivenInput, ScriptReport, Written
from orchestration.local.server.embedded import DEFAULT_REGION, EmbeddedAws
from orchestration.stages.deployment import Deployment
from orchestration.stages.endpoints.cases import SmokeTest
from orchestration.stages.training import TrainingJob

if TYPE_CHECKING:
    from orchestration.local.run.report import RunReport
    from orchestration.pipeline import Pipeline

_OUTPUTS: Final = "outputs.json"
_TIME_SCALE: Final = 0.001

OnInputs = Callable[[Alone, tuple[GivenInput, ...]], None]


def check(
    pipeline: Pipeline,
    stage: str,
    *,
    folder: Path,
    channels: Mapping[str, Path] | None = None,
    parameters: Mapping[str, Json] | None = None,
    uploads: Mapping[str, Path] | None = None,
    request: SmokeTest | None = None,
    on_inputs: OnInputs | None = None,
) -> ScriptReport:
    """Run a stage's script once, on this machine, and report how that ended.

    Its data is ``channels`` (folders and files by the names of its inputs), else ``uploads`` (by
    the S3 URIs that the pipeline reads), else what earlier checks of other stages have left in
    ``folder``; there it leaves logs and results, too. ``request`` is what a model has to answer.

    Raises :class:`~orchestration.errors.PipelineError` where inputs are missing.
    """
    with tempfile.TemporaryDirectory(prefix="check-script-") as scratch:
        given = _Given(pipeline, stage, Path(scratch))
        own = {name: given.placed(name, path) for name, path in (channels or {}).items()}
        kept = _Kept(folder, stage)
        files = _files([*(uploads or {}).items(), *kept.objects(), *own.values()])
        single = alone(
            pipeline,
            stage,
            channels={name: uri for name, (uri, _) in own.items()},
            parameters={**_defaults(pipeline), **(parameters or {})},
            outputs=kept.outputs(),
        )
        if request is not None and isinstance(single.stage, Deployment):
            single = _asked(single, request)
        inputs = _inputs(single, files)
        if on_inputs is not None:
            on_inputs(single, inputs)
        return _Check(single, inputs, files, folder / stage).report()


def _defaults(pipeline: Pipeline) -> dict[str, Json]:
    specs = pipeline.parameter_specs()
    return {spec.name: spec.default for spec in specs if spec.default is not None}


def _asked(single: Alone, request: SmokeTest) -> Alone:
    stage = single.stage.model_copy(update={"smoke_test": request})
    made = single.pipeline.model_copy(update={"stages": (stage,)})
    return replace(single, pipeline=made, stage=stage)


@dataclass(frozen=True, slots=True)
class _Given:
    """Inputs from this machine, in the places of the embedded S3 that they get."""

    pipeline: Pipeline
    stage: str
    scratch: Path

    def placed(self, name: str, path: Path) -> tuple[str, Path]:
        """Return the S3 URI of an input, and what is uploaded there."""
        if not path.exists():
            message = f"--channel {name}: there is no file or folder {path}"
            raise PipelineError([Problem("", message, stage=self.stage)])
        stages = {each.name: each for each in self.pipeline.every_stage}
        place = f"s3://{BUCKET}/inputs/{name}"
        if path.is_file():
            return f"{place}/{path.name}", path
        if self.stage in stages and wants_archive(stages[self.stage], name, stages):
            packed = self.scratch / "model.tar.gz"
            packed.write_bytes(archive.pack(path))
            return f"{place}/{packed.name}", packed
        return place, path


@dataclass(frozen=True, slots=True)
class _Kept:
    """The results of earlier checks of other stages."""

    folder: Path
    stage: str

    def outputs(self) -> dict[str, dict[str, Json]]:
        """Return the outputs of stages, by stage and name."""
        return {
            file.parent.name: json.loads(file.read_bytes())
            for file in sorted(self.folder.glob(f"*/{_OUTPUTS}"))
            if file.parent.name != self.stage
        }

    def objects(self) -> Iterator[tuple[str, Path]]:
        """Yield the URIs and files of their objects."""
        for stage in self.outputs():
            root = self.folder / stage / "s3"
            for bucket in sorted(root.glob("*")):
                yield f"s3://{bucket.name}", bucket


def _files(uploads: list[tuple[str, Path]]) -> dict[str, Path]:
    """Return the files to upload, by URI; later ones take the place of earlier ones."""
    return {uri: file for upload, path in uploads for uri, file in objects(upload, path)}


def _inputs(single: Alone, files: Mapping[str, Path]) -> tuple[GivenInput, ...]:
    made, wrong = [], []
    for each in single.inputs:
        uri = each.uri if isinstance(each.uri, str) else ""
        sizes = [file.stat().st_size for key, file in files.items() if uri and key.startswith(uri)]
        made.append(GivenInput(name=each.name, place=each.place, files=len(sizes), size=sum(sizes)))
        if not sizes:
            message = f"no file is given for {uri or each.uri!r}: --channel {each.name}=DIR"
            wrong.append(Problem(each.field, message, stage=single.stage.name))
    if wrong:
        raise PipelineError(wrong)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Check:
    """A check whose inputs are all there."""

    single: Alone
    inputs: tuple[GivenInput, ...]
    files: Mapping[str, Path]
    folder: Path

    def report(self) -> ScriptReport:
        """Run the script in an account of its own; its last results are replaced."""
        pipeline, stage = self.single.pipeline, self.single.stage
        run_id = f"check-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S-%f}"
        region = pipeline.region or DEFAULT_REGION
        with EmbeddedAws(region=region, time_scale=_TIME_SCALE) as aws:
            came = run(pipeline, aws=aws, uploads=dict(self.files), run_id=run_id)
            shutil.rmtree(self.folder, ignore_errors=True)
            keep(aws, came, self.folder, uploads=self.files)
            logs = {job: aws.logs(job) for _, job in logged(came)}
        if came.state == "succeeded":
            outputs = self._outputs(came, run_token(f"{pipeline.name}/{run_id}"))
            (self.folder / _OUTPUTS).write_text(json.dumps(outputs, indent=2), encoding="utf-8")
        kind = str(getattr(stage, "kind", ""))
        return self._reported(came, "".join(logs.values()), kind)

    def _outputs(self, came: RunReport, token: str) -> dict[str, Json]:
        """Return the outputs that a run shows, and those that follow from its name."""
        stage = self.single.stage
        values = Values({}, {}, run_token=token)
        made: dict[str, Json] = {}
        for name, tree in stage.lower(self.single.pipeline.context()).outputs.items():
            try:
                made[name] = evaluate(tree, values)
            except ExpressionError:
                continue
        shown = (came.outputs or {}).get(stage.name)
        return {**made, **shown} if isinstance(shown, dict) else made

    def _reported(self, came: RunReport, log: str, kind: str) -> ScriptReport:
        stage, ended = self.single.stage, came.stages[0]
        written = [path for path in sorted((self.folder / "s3").rglob("*")) if path.is_file()]
        archives = [path for path in written if path.name == "model.tar.gz"]
        saved = [path for path in written if "checkpoints" in path.parts]
        others = [path for path in written if path not in {*archives, *saved}]
        shown = (came.outputs or {}).get(stage.name)
        wanted = set(stage.defined_metrics) if isinstance(stage, TrainingJob) else set()
        own = stage.metrics if isinstance(stage, TrainingJob) else ()
        return ScriptReport(
            stage=stage.name,
            kind=kind,
            state=came.state,
            error=came.error,
            cause=came.cause,
            duration_s=round(came.duration_s, 1),
            inputs=self.inputs,
            command=tuple(_command(came)),
            environment=reporting.variables(log),
            metrics={k: v for k, v in ended.metrics.items() if not wanted or k in wanted},
            # Those of the runtime are printed by scripts that ask for them.
            missing_metrics=tuple(sorted({*own} - {*ended.metrics})),
            checkpoints=tuple(sorted({_below(path, "checkpoints") for path in saved})),
            model=tuple(member for path in archives for member in reporting.members(path)),
            results=tuple(Written(path=p.name, size=p.stat().st_size) for p in others),
            evaluations=reporting.evaluations(came.calls, self.folder / "s3"),
            answer=shown.get("answer") if isinstance(shown, dict) else None,
            folder=self.folder,
            log=_last(ended.log, log) if came.state == "failed" else (),
        )


def _below(path: Path, folder: str) -> str:
    return path.parts[path.parts.index(folder) + 1]


def _last(lines: tuple[str, ...], log: str) -> tuple[str, ...]:
    """Return the last lines of the job that failed; of a model that did, those of its server."""
    return lines or tuple(end_of(log.splitlines()))


def _command(came: RunReport) -> Iterator[str]:
    """Yield the program of a processing job, and its arguments."""
    for call in came.calls:
        if call.operation == "CreateProcessingJob":
            program: Mapping[str, Any] = call.request["AppSpecification"]
            yield from program.get("ContainerEntrypoint", ())
            yield from program.get("ContainerArguments", ())
            return
