"""Pipelines of one short training job each, for the candidates of a stage that is to be planned."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestration.errors import PipelineError, Problem, near
from orchestration.pipeline.files import with_code
from orchestration.pipeline.nesting.inlining import whole
from orchestration.pipeline.pinning import lock_file
from orchestration.pipeline.plans import automatic, requests, told, with_models

if TYPE_CHECKING:
    from orchestration.catalog import Price
    from orchestration.pipeline.plans import Pinned
    from orchestration.planning.search.answers.plans import Plan
    from orchestration.planning.search.space import Space
    from orchestration.planning.search.task import Task
    from orchestration.stages.training.automatic import Auto

STAGE: Final = "probe"
"""The name of the one stage of a probe's pipeline."""

STEPS: Final = "ORCHESTRATION_PROBE_STEPS"
"""The variable that ends ``measured_steps`` of the runtime after so many steps."""

_START_UP_S: Final = 1200
"""Seconds for code, data and the model before the first step."""

_STEP_S: Final = 60
"""Seconds that a step may take of which nothing is known."""

_GRACE_S: Final = 120
"""Seconds between the end of a job's time and that of its machines.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html
"""

_PIPELINE: Final[tuple[str, ...]] = ("name", "description", "workspace", "role", "region", "tags")
"""Fields of a pipeline that its probes keep."""

_STAGE: Final[tuple[str, ...]] = (
    "kind", "image", "framework", "algorithm", "entrypoint", "arguments", "source", "log_level",
    "hyperparameters", "channels", "cluster", "environment", "vpc", "input_mode", "output",
    "enable_network_isolation", "encrypt_inter_container_traffic", "local", "poll_interval_s",
    "tags", "extra_request",
)  # fmt: skip
"""Fields of a stage that its probes keep: all that the work of a step depends on. Checkpoints are
left out, so that a probe begins none and changes none; so are spot and further tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A short job: a candidate, and the pipeline that measures it."""

    plan: Plan
    steps: int
    max_runtime_s: int
    usd_per_h: float | None
    """Price of the whole cluster on demand; of an estimate, its high end."""
    data: Mapping[str, Any]
    """The pipeline, as a YAML file would hold it."""

    @property
    def most_usd(self) -> float | None:
        """The most that it can cost; ``None``: the price is unknown."""
        seconds = self.max_runtime_s + _GRACE_S
        return None if self.usd_per_h is None else self.usd_per_h * seconds / 3600


class Asked:
    """A stage that asks for a plan, of a pipeline's file."""

    def __init__(self, path: Path, stage: str | None) -> None:
        """Read the file.

        Raises:
            PipelineError: no such stage asks for a plan, or it can't be probed.
        """
        self._path = path
        self._data = whole(path).data
        self.name, self._stage = _chosen(self._data, stage)
        self._written = copy.deepcopy(self._stage)
        if problems := [*with_models(self._data, path.parent), *_unmeasured(self._stage)]:
            raise PipelineError(
                problem if problem.stage else _of_stage(problem, self.name) for problem in problems
            )
        self.request: Auto = requests(self._data)[self.name]

    def probe(self, plan: Plan, space: Space, steps: int, channels: Mapping[str, str]) -> Probe:
        """Return the probe of a plan.

        Raises:
            PipelineError: the stage reads what other stages make.
        """
        longest = ceil(_START_UP_S + 2 * steps * longest_step_s(plan))
        stage = {key: copy.deepcopy(self._written[key]) for key in _STAGE if key in self._written}
        stage["strategy"] = plan.strategy.model_dump(mode="json", exclude_none=True)
        stage["cluster"] = {
            **(stage.get("cluster") or {}),
            "instance_type": plan.instance_type,
            "instance_count": plan.instance_count,
        }
        given = stage.get("hyperparameters") or {}
        stage["hyperparameters"] = {**given, **told(self._written, plan)}
        stage["environment"] = {**(stage.get("environment") or {}), STEPS: str(steps)}
        stage["channels"] = {**(stage.get("channels") or {}), **channels}
        stage["max_runtime_s"] = longest
        if isinstance(stage.get("output"), dict):
            stage["output"] = {k: v for k, v in stage["output"].items() if k != "uri"}
        if problems := list(_elsewhere(stage, self.name)):
            raise PipelineError(problems)
        data = {key: copy.deepcopy(self._data[key]) for key in _PIPELINE if key in self._data}
        data["stages"] = {STAGE: stage}
        data["parameters"] = _used(self._data.get("parameters") or {}, data)
        usd = _most_usd_per_h(space.price(plan.instance_type))
        return Probe(
            plan=plan,
            steps=steps,
            max_runtime_s=longest,
            usd_per_h=None if usd is None else usd * plan.instance_count,
            data=with_code(data, self._path.parent),
        )

    @property
    def directory(self) -> Path:
        """The folder of the pipeline's file."""
        return self._path.parent

    @property
    def region(self) -> str | None:
        """The region of the pipeline, if it names one."""
        region = self._data.get("region")
        return region if isinstance(region, str) else None

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters of the stage's pipeline."""
        return frozenset(self._data.get("parameters") or {})

    @property
    def pipeline(self) -> str:
        """The name of the stage's pipeline."""
        return str(self._data.get("name"))

    @property
    def pin(self) -> Pinned | None:
        """The plan that the lock file pins for the stage."""
        locked = lock_file.read(lock_file.lock_path(self._path), self._path)
        return locked.plans.get(self.name)

    @property
    def task(self) -> Task:
        """The training that the stage asks a plan for."""
        return self.request.task()


def longest_step_s(plan: Plan) -> float:
    """Return the seconds that one step may take, by the prediction."""
    return plan.prediction.high_s if is_predicted(plan) else _STEP_S


def is_predicted(plan: Plan) -> bool:
    """Return whether anything is known of a plan's step time: a formula, or a measurement."""
    return plan.prediction.low_s > 0


def _most_usd_per_h(price: Price | None) -> float | None:
    from orchestration.planning.search.preference import PRICE_FACTOR

    if price is None:
        return None
    return price.usd_per_hour * (PRICE_FACTOR if price.estimate else 1.0)


def _chosen(data: Mapping[str, Any], stage: str | None) -> tuple[str, dict[str, Any]]:
    asking = dict(automatic(data))
    if not asking:
        message = "no stage has strategy: {kind: auto, …}, so there is nothing to probe"
        raise PipelineError([Problem("stages", message)])
    if stage is None and len(asking) > 1:
        names = ", ".join(asking)
        raise PipelineError([Problem("stages", f"name one of the stages to probe: {names}")])
    name = stage or next(iter(asking))
    if name not in asking:
        message = f"no stage {name!r} asks for a plan{near(name, asking)}"
        raise PipelineError([Problem("stages", message)])
    return name, asking[name]


def _unmeasured(stage: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why the jobs of a stage can't be short, or would say nothing."""
    if stage.get("kind") != "training_job":
        yield Problem("kind", "only a training_job can be probed")
    source = stage.get("source")
    if not (isinstance(source, Mapping) and source.get("runtime") is True):
        yield Problem(
            "source",
            "a probe needs runtime: true, and measured_steps around the script's batches",
        )


def _of_stage(problem: Problem, stage: str) -> Problem:
    return Problem(problem.path, problem.message, stage=stage)


def _elsewhere(value: object, stage: str, path: str = "") -> Iterator[Problem]:
    """Yield the places that read an output of another stage, which a probe does not run."""
    if isinstance(value, Mapping):
        if isinstance(value.get("ref"), str):
            where = path.removeprefix(".")
            message = f"reads {value['ref']}, which a probe does not make"
            if where.startswith("channels."):
                name = where.split(".")[1]
                message += f"; give its place: --channel {name}=s3://…"
            yield Problem(where, message, stage=stage)
            return
        for key, inner in value.items():
            yield from _elsewhere(inner, stage, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _elsewhere(inner, stage, f"{path}.{number}")


def _used(parameters: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a probe's pipeline refers to."""
    names = set(_parameters(data))
    return {name: spec for name, spec in parameters.items() if name in names or name == "role"}


def _parameters(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        name = value.get("parameter")
        if isinstance(name, str):
            yield name
        for inner in value.values():
            yield from _parameters(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parameters(inner)
