"""The estimate of a workflow: a walk through its steps, and what is paid around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from orchestration.catalog import rate
from orchestration.expressions import Json, Tree
from orchestration.graph import (
    Call,
    Choose,
    ForEach,
    Graph,
    Guarded,
    Read,
    Workflow,
    all_steps,
    bodies,
    stage_of,
)
from orchestration.graph.steps import Step
from orchestration.pricing import endpoints, jobs, machine, services
from orchestration.pricing.assumptions import Assumptions
from orchestration.pricing.knowing import Known, Times
from orchestration.pricing.lasting import JOBS
from orchestration.pricing.lines import Estimate, Line, Sum, merged

_FREE: Final = frozenset(
    {"application-autoscaling", "cloudwatch", "datasync", "fsx", "iam", "s3control", "sagemaker"}
    | {"sagemaker-runtime", "sts"}
)
"""Services whose requests cost nothing: what they create or run does."""
_STARTS: Final = ("Create", "Start", "Run", "Put")
_FREE_STARTS: Final = frozenset(
    {"CreateDataRepositoryAssociation", "CreateDataRepositoryTask", "CreateEndpoint"}
    | {"CreateEndpointConfig", "CreateModel", "CreateModelPackage", "CreateModelPackageGroup"}
    | {"CreateInferenceComponent", "CreateTask"}
)
"""Requests that create what costs nothing, or what is counted elsewhere."""


def estimate(
    workflow: Workflow,
    assumptions: Assumptions,
    *,
    region: str,
    parameters: Mapping[str, Json],
    definition: Mapping[str, Json] | None = None,
) -> Estimate:
    """Return what a run costs, and what stays after it.

    `parameters`: those that are known; defaults count where they give none. `definition`: that
    of the state machine, if one runs it.
    """
    known = known_of(workflow, region, parameters, assumptions)
    walk = _Walk(workflow.graph)
    lines = [*walk.lines(workflow.graph, known, Times())]
    if definition is not None:
        lines.append(machine.line(definition, workflow, known))
    return Estimate(
        pipeline=workflow.name,
        region=region,
        lines=tuple(line for line in merged(lines) if line.expected != 0.0 or line.most != 0.0),
        runs_per_month=assumptions.runs_per_month,
        unpriced=tuple(dict.fromkeys(walk.unpriced)),
        outside=tuple(_outside(workflow.graph, known)),
        assumed={**assumptions.values, "spot_saving": assumptions.spot_saving},
    )


def known_of(
    workflow: Workflow, region: str, parameters: Mapping[str, Json], assumptions: Assumptions
) -> Known:
    """Return what is known of a workflow; defaults count where parameters give no value."""
    defaults = {spec.name: spec.default for spec in workflow.parameters if spec.default is not None}
    values: dict[str, Json] = {}
    for name, value in {**defaults, **parameters}.items():
        values[name] = list(value) if isinstance(value, tuple) else value
    return Known.of(workflow.graph, region, values, assumptions)


def stages(graph: Graph) -> frozenset[str]:
    """Return the names of a graph's stages."""
    return frozenset(stage_of(step.name) for step in all_steps(graph))


@dataclass(slots=True)
class _Walk:
    graph: Graph
    endpoints: endpoints.Endpoints = field(init=False)
    modes: dict[str, str] = field(init=False)
    """Modes of DataSync by stage."""
    unpriced: list[str] = field(default_factory=list)
    counted: list[Tree] = field(default_factory=list)
    """The names of the endpoints of components that have been counted, once for all of these."""

    def __post_init__(self) -> None:
        self.endpoints = endpoints.Endpoints(self.graph)
        calls = [step for step in all_steps(self.graph) if isinstance(step, Call)]
        self.modes = {
            stage_of(call.name): str(call.operation.request.get("TaskMode", "BASIC"))
            for call in calls
            if call.operation.name == "CreateTask"
        }

    def lines(self, graph: Graph, known: Known, often: Times) -> Iterator[Line]:
        for step in graph.steps:
            match step:
                case Call():
                    yield from self._of_call(step, known, often)
                case Read():
                    yield services.requests(step.name, "GetObject", known, often)
                case Choose():
                    yield from self._of_choice(step, known, often)
                case ForEach():
                    yield from self._of_loop(step, known, often)
                case Guarded():
                    yield from self._of_guard(step, known, often)
                case _:
                    yield from self._inside(step, known, often)

    def _inside(self, step: Step, known: Known, often: Times) -> Iterator[Line]:
        for body in bodies(step):
            yield from self.lines(body, known, often)

    def _of_loop(self, loop: ForEach, known: Known, often: Times) -> Iterator[Line]:
        elements = known.elements(loop)
        if elements is None:
            yield from self.lines(loop.body, known, often * known.count(loop))
            return
        for element in elements:
            yield from self.lines(loop.body, known.at(element), often)

    def _of_choice(self, choice: Choose, known: Known, often: Times) -> Iterator[Line]:
        ways = [[*self.lines(body, known, often)] for body in (choice.then, choice.otherwise)]
        most = [_bound(lines) for lines in ways]
        dearer = 0 if most[0] >= most[1] else 1
        yield from ways[dearer]
        for line in ways[1 - dearer]:
            yield replace(line, alternative=True)

    def _of_guard(self, guard: Guarded, known: Known, often: Times) -> Iterator[Line]:
        operation = guard.acquire.operation
        if (operation.service, operation.name) == ("fsx", "CreateFileSystem"):
            yield from services.file_system(guard, known, often)
        elif (operation.service, operation.name) == endpoints.CREATES:
            yield from self.endpoints.tried(guard, known, often)
        else:
            yield from self._of_call(guard.acquire, known, often)
        yield from self.lines(guard.body, known, often)
        yield from self.lines(guard.cleanup, known, often)

    def _of_call(self, call: Call, known: Known, often: Times) -> Iterator[Line]:
        service, name = call.operation.service, call.operation.name
        if service == "sagemaker" and name in JOBS:
            yield from jobs.lines(call, known, often)
            yield from services.logs(call, known, often)
        elif service == "s3":
            pages = 1 if call.pages is None else call.pages.most
            yield services.requests(call.name, name, known, often, pages)
        elif (service, name) == ("datasync", "StartTaskExecution"):
            mode = self.modes.get(stage_of(call.name), "BASIC")
            yield from services.transfer(call, mode, known, often)
        elif (service, name) == ("s3control", "CreateJob"):
            yield from services.batch(call, known, often)
        elif (service, name) == ("cloudwatch", "PutMetricAlarm"):
            yield services.alarm(call, known, often)
        elif (service, name) == ("application-autoscaling", "PutScalingPolicy"):
            yield from services.followed(call, known, often)
        elif (service, name) == endpoints.CONFIGURES:
            yield from self._of_endpoint(call, known, often)
        elif not _is_free(service, name):
            self.unpriced.append(f"{service}:{name}")

    def _of_endpoint(self, config: Call, known: Known, often: Times) -> Iterator[Line]:
        name, lines = self.endpoints.name(config, known), []
        if name is None or name not in self.counted:
            lines = [*self.endpoints.monthly(config, known, often)]
        if lines:
            self.counted.append(name)
        yield from lines


def _is_free(service: str, name: str) -> bool:
    return service in _FREE and (not name.startswith(_STARTS) or _is_counted(name))


def _is_counted(name: str) -> bool:
    return name in _FREE_STARTS or name.startswith("CreateLocation")


def _bound(lines: list[Line]) -> float:
    most = Sum.of(lines).most_usd
    return float("inf") if most is None else most


def _outside(graph: Graph, known: Known) -> Iterator[str]:
    logs = rate("logs", known.region)
    silent = [
        stage
        for call in all_steps(graph)
        if isinstance(call, Call) and call.operation.name in JOBS
        if known.assumptions.of(stage := stage_of(call.name), "log_gb") is None
    ]
    if logs is not None and silent:
        names = ", ".join(dict.fromkeys(silent))
        yield f"what jobs of {names} log: ${logs.usd:g} a {logs.per}; --assume STAGE.log_gb=NUMBER"
    yield "storage in S3, KMS, and traffic between zones or out of the region"
