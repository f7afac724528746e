"""The job that decides: what it is told, what it reads, and what follows from its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from orchestration.catalog.partitions import partition_of
from orchestration.checks.places import place
from orchestration.expressions import (
    Any,
    Compare,
    Function,
    Json,
    Not,
    Result,
    Tree,
    apply,
    join,
    run_id,
)
from orchestration.graph import (
    Call,
    First,
    Operation,
    Output,
    Part,
    Permission,
    Read,
    Require,
    Step,
)
from orchestration.notices import CONSOLES
from orchestration.refs import Expression
from orchestration.stages.evaluation.comparing import Bounds, EvaluationReport
from orchestration.stages.evaluation.fields import EvaluationFields
from orchestration.stages.evaluation.jobs import REPORTS, second_name
from orchestration.stages.evaluation.outputs import BEST
from orchestration.stages.processing.gate import gate
from orchestration.stages.processing.request import INPUT, OUTPUT, Job, read, written
from orchestration.stages.registry.versions import permissions
from orchestration.stages.stage import Context, Fragment, Gate
from orchestration.stages.values import Source

VERDICT: Final = "verdict"
_OF_CHAMPION: Final = ("sagemaker:DescribeModelPackage", "sagemaker:ListModelPackages")
_REQUEST: Final = "request.json"
_PROGRAM: Final = Path(__file__).parents[2] / "runtime" / "verdict"
_CODE: Final = f"{INPUT}/code/orchestration_verdict"
_PROMOTED: Final = "promoted"
_KEPT: Final = "champion_kept"
_FAILURES: Final[Mapping[str, tuple[str, str]]] = {
    "evaluations_failed": ("evaluated", "EvaluationsFailed"),
    "not_finite": ("finite", "MetricNotFinite"),
    "champion_not_evaluated": ("compared", "ChampionNotEvaluated"),
}
"""Outcomes that fail every run: the step that does, and its error."""
_MISSES: Final[Mapping[str, tuple[str, str]]] = {
    "no_checkpoint": ("some", "NoCheckpoints"),
    "bounds_missed": ("constraints", "ConstraintNotMet"),
    "below_threshold": ("gate", "BelowThreshold"),
}
"""Outcomes that fail a run unless it says ``on_miss: stop`` or ``go_on``."""
_FIGURES: Final[Mapping[str, str]] = {
    "champion": "champion",
    "champion_metric": "champion_metric",
    "improvement": "improvement",
    "interval_low": "interval_low",
    "interval_high": "interval_high",
}


def code() -> Source:
    """Return the program, which is a part of this package."""
    return Source.at(_PROGRAM, "__main__.py")


@dataclass(frozen=True)
class Deciding:
    """The steps after the evaluations."""

    stage: EvaluationFields
    context: Context
    models: Mapping[str, Tree]
    """The models, as the job is told: one ``model``, ``checkpoints`` of a ``bucket``, or ``models``
    with their training jobs."""
    champion: Tree = None
    """S3 URI of the champion; empty where there is none yet."""

    def fragment(self, steps: Sequence[Step], after: Sequence[str]) -> Fragment:
        """Return the stage; ``after`` names the steps that the decision waits for."""
        stage, verdict = self.stage, f"{self.stage.name}.verdict"
        told = self._told()
        own: tuple[Step, ...] = (
            told,
            self._job((told.name, *after)),
            self._verdict(),
            *self._failures(verdict),
        )
        outcome = Result(verdict, "outcome")
        passed = Compare("eq", outcome, _PROMOTED)
        best = Result(verdict, "best")
        model: dict[str, Tree] = {"model": best if stage.several else self.models["model"]}
        if stage.subject == "checkpoints":
            model = {"best_checkpoint": best}
        elif stage.subject == "tuning_job":
            model["best_training_job"] = Result(verdict, "best_name")
        figures: dict[str, Tree] = {
            name: Result(verdict, name) for name in _FIGURES if stage.champion is not None
        }
        return Fragment(
            steps=(*steps, *own),
            outputs={
                **model,
                "best_metric": Result(verdict, stage.column(stage.metric)),
                "passed": passed,
                **{f"{BEST}{name}": Result(verdict, stage.column(name)) for name in stage.metrics},
                "outcome": outcome,
                "explanation": Result(verdict, "explanation"),
                **figures,
                "report": self._page,
                "report_link": self._link,
                "report_data": join(self._place(VERDICT), "/report.json"),
            },
            gate=self._gate(outcome, passed),
            permissions=self._needs(),
        )

    def _needs(self) -> tuple[Permission, ...]:
        """Return what a champion's group of another account asks of whoever looks at it."""
        champion, actions = self.stage.champion, list[str]()
        if champion is None or champion.package_group is None:
            return ()
        if champion.registry_role is None:
            actions += _OF_CHAMPION
        if self.stage.transform is not None:
            # A model is made of a version by the pipeline's own role, whoever looked at it.
            actions += ("sagemaker:CreateModel", "sagemaker:DescribeModelPackage")
        named = dict.fromkeys(actions)
        return permissions(champion.package_group, *named) if named else ()

    def _gate(self, outcome: Result, passed: Expression[bool]) -> Gate | None:
        """Return the gate of what depends on the stage, unless every outcome may go on."""
        champion, miss = self.stage.champion, self.stage.miss
        if champion is None:
            return gate(passed, miss)
        kept = Compare("eq", outcome, _KEPT)
        if champion.on_kept == "go_on":
            return Gate(Any((passed, kept)), "stop") if miss == "stop" else None
        return Gate(Not(kept) if miss == "go_on" else passed, "stop")

    @property
    def _page(self) -> Expression[str]:
        return join(self._place(VERDICT), "/report.html")

    @property
    def _link(self) -> Expression[str]:
        region = self.context.region
        bucket, key = (apply(each, self._page) for each in (Function.S3_BUCKET, Function.S3_KEY))
        named = "" if region is None else f"region={region}&"
        return join(
            *(f"https://{CONSOLES[partition_of(region)]}/s3/object/", bucket),
            *(f"?{named}prefix=", apply(Function.URL_PATH, key)),
        )

    def _place(self, *below: str) -> Expression[str]:
        return self.context.location(self.stage.name, *below)

    def _told(self) -> Call:
        """Return the step that writes the request, with the list of what was evaluated."""
        uri = join(self._place(REPORTS), "/", _REQUEST)
        request: dict[str, Tree] = {
            "Bucket": apply(Function.S3_BUCKET, uri),
            "Key": apply(Function.S3_KEY, uri),
            "Body": {**self._rules(), **self.models},
            "ContentType": "application/json",
        }
        name = f"{self.stage.name}.request"
        return Call(name=name, operation=Operation("s3", "PutObject", request))

    def _rules(self) -> dict[str, Tree]:
        stage, champion = self.stage, self.stage.champion
        rules: dict[str, Tree] = {
            "pipeline": self.context.pipeline,
            "stage": stage.name,
            "run": run_id(),
            "metric": stage.metric,
            "direction": stage.direction,
            "failures_allowed": stage.failures_allowed or 0,
            "metrics": {
                name: _rule(stage.place(name), stage.metrics.get(name), stage.bound)
                for name in stage.measured().values()
            },
            "slices": {
                name: _rule(("slices", name) if group.path is None else place(group.path), group)
                for name, group in stage.slices.items()
            },
        }
        if stage.recorded is not None:
            rules["file"] = stage.recorded
        if stage.threshold is not None:
            rules["threshold"] = stage.bound(stage.threshold.value)
        if champion is not None:
            source: tuple[str, Tree] = ("the endpoint ", champion.endpoint)
            if champion.inference_component is not None:
                source = ("the inference component ", champion.inference_component)
            elif champion.endpoint is None:
                source = ("the latest approved version of ", champion.package_group)
            rules["champion"] = {
                "source": join(*cast("tuple[str, str]", source)),
                "margin": champion.margin,
                "confidence": champion.confidence,
                "model": self.champion,
            }
        return rules

    def _job(self, after: tuple[str, ...]) -> Call:
        stage, context = self.stage, self.context
        asked = EvaluationReport() if stage.report is None else stage.report
        files = join(context.source(code()), "/files")
        job = Job(
            name=second_name(stage, context, VERDICT),
            context=context,
            image=stage.registry_path(context) if asked.image is None else asked.image,
            entrypoint=("python3", _CODE),
            arguments=(f"{INPUT}/{REPORTS}", f"{OUTPUT}/{VERDICT}"),
            inputs=(read("code", files, _CODE), read(REPORTS, self._place(REPORTS))),
            outputs=(written(VERDICT, self._place(VERDICT), f"{OUTPUT}/{VERDICT}"),),
            cluster={
                "InstanceCount": 1,
                "InstanceType": asked.instance_type,
                "VolumeSizeInGB": asked.volume_gib,
            },
            max_runtime_s=asked.max_runtime_s,
            tags=context.tag_list(stage.name),
            network={} if stage.vpc is None else {"VpcConfig": stage.vpc.request()},
            extra=stage.extra_request,
        )
        return replace(job.call(f"{stage.name}.decide", stage.poll_interval_s), after=after)

    def _verdict(self) -> Read:
        stage = self.stage
        absent: Json = None
        figures = {
            name: Output((name,), kind="string" if name == "champion" else "number", default=absent)
            for name in _FIGURES
            if stage.champion is not None
        }
        return Read(
            name=f"{stage.name}.verdict",
            uri=join(self._place(VERDICT), "/verdict.json"),
            outputs={
                "outcome": Output(("outcome",), kind="string"),
                "explanation": Output(("explanation",), kind="string"),
                "best": Output(("best",), kind="string", default=absent),
                **(
                    {"best_name": Output(("best_name",), kind="string", default=absent)}
                    if stage.subject == "tuning_job"
                    else {}
                ),
                **{
                    column: Output(("metrics", name), kind="number", default=absent)
                    for column, name in stage.measured().items()
                },
                **figures,
            },
            after=(f"{stage.name}.decide",),
        )

    def _failures(self, verdict: str) -> Iterator[Require]:
        """Yield the requirements of a run that an outcome fails."""
        stage, before = self.stage, verdict
        failures = dict(_FAILURES) if stage.miss != "fail" else {**_FAILURES, **_MISSES}
        if stage.champion is None:
            del failures["champion_not_evaluated"]
        if stage.subject != "checkpoints":
            failures.pop("no_checkpoint", None)
        if stage.threshold is None:
            failures.pop("below_threshold", None)
        if not stage.bounded() and not any(group.bounds for group in stage.slices.values()):
            failures.pop("bounds_missed", None)
        for outcome, (name, error) in failures.items():
            required = Require(
                name=f"{stage.name}.{name}",
                condition=Compare("ne", Result(verdict, "outcome"), outcome),
                error=error,
                cause=join(
                    *(f"stage {stage.name}: ", Result(verdict, "explanation")),
                    *("; the page about it is ", self._page),
                ),
                after=(before,),
            )
            before = required.name
            yield required


def _rule(
    parts: Sequence[Part], bounds: Bounds | None, bound: Callable[[float], float] = float
) -> Tree:
    path = [
        {"field": part.field, "value": part.value} if isinstance(part, First) else part
        for part in parts
    ]
    rule: dict[str, Tree] = {"path": path}
    for name in ("minimum", "maximum"):
        value = getattr(bounds, name, None)
        if value is not None:
            rule[name] = bound(value)
    return rule
