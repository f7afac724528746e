"""From stages to one step graph: references resolved, gates and guards in their places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from orchestration.checks import rules
from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Apply, Function, Join, Parameter, Tree, walk
from orchestration.graph import (
    Call,
    Graph,
    ParameterSpec,
    Workflow,
    all_steps,
    always,
    stage_of,
    trees,
)
from orchestration.graph.ordering import circle
from orchestration.pipeline import looping
from orchestration.pipeline.afterwards import concluding, reading
from orchestration.pipeline.afterwards.concluding import Conclusion, Reads
from orchestration.pipeline.conditions.inheriting import Conditions
from orchestration.pipeline.description import ROLE, Description
from orchestration.pipeline.draft import Draft
from orchestration.pipeline.elements import groups
from orchestration.pipeline.elements.groups import Group
from orchestration.pipeline.placing.fragments import Lowering, fragments, of_stage
from orchestration.pipeline.placing.lowered import Lowered
from orchestration.pipeline.placing.placement import Placement, Settled
from orchestration.pipeline.problems import problems
from orchestration.pipeline.unchanged import Ending
from orchestration.stages import Context, Stage

_PARTS_OF_URI = (Function.S3_BUCKET, Function.S3_KEY)
_S3_FIELD = re.compile(r"S3(Uri|OutputPath|FailurePath)$")
"""Fields of SageMaker's requests: botocore, 1.43."""


def lower(pipeline: Description) -> Workflow:
    """The pipeline as a workflow, or a :class:`PipelineError` with everything that is wrong."""
    draft = Draft.of(pipeline)
    found = problems(draft)
    if found:
        raise PipelineError([*found, *of_requests(draft, found)])
    conditions = reading.conditions(draft.stages)
    read = looping.outputs_read(pipeline.every_stage)
    lowered = _lowered(pipeline, conditions, read)
    reads = Reads.of(pipeline, conditions)
    settled = Placement.of(lowered).settled(reads.succeeded, reads.ended)
    graph, outputs = settled.graph, settled.outputs
    if ending := Ending.of(graph, outputs, lowered.fragments, pipeline.possible_parameters()):
        graph, outputs = ending.whole(), ending.outputs()
    permissions = settled.permissions
    if concluding.last_stages(pipeline):
        conclusion = Conclusion(pipeline, lowered, conditions, settled.read, settled.kept)
        whole = _concluded(conclusion, graph, read)
        graph, permissions = whole.graph, {**permissions, **whole.permissions}
    resources = [p.resources for each in permissions.values() for p in each]
    workflow = Workflow(
        name=pipeline.name,
        description=pipeline.description,
        parameters=_parameters(pipeline, graph, [outputs, settled.written, *resources]),
        graph=graph,
        outputs=outputs,
        schedule=pipeline.schedule_spec(),
        trigger=pipeline.trigger_spec(),
        overlap=pipeline.overlap,
        notify=None if pipeline.notify is None else pipeline.notify.spec(),
        tags=pipeline.tags,
        integrations=pipeline.integrations(),
        airflow=pipeline.airflow_settings(),
        alias=pipeline.alias(),
        region=pipeline.region,
        written=settled.written,
        permissions=permissions,
    )
    if wrong := rules.problems(workflow):
        raise PipelineError([_in_stage(problem) for problem in wrong])
    return workflow


def _lowered(
    pipeline: Description,
    conditions: Mapping[str, Conditions],
    read: Mapping[str, frozenset[str]],
) -> Lowered:
    """Return the ordinary stages, lowered; those that run together as one."""
    units = _units(pipeline, conditions)
    needed = _between(pipeline.stages, looping.reading)
    direct = _between(pipeline.stages, needs)
    if members := circle(direct):
        message = f"stages wait for each other: {' -> '.join(members)}"
        raise PipelineError([Problem("stages", message)])
    context = pipeline.context()
    lowered = Lowered(
        fragments=fragments(_lowerings(units, context, read), direct),
        direct=direct,
        readers=_inverted(needed),
        shown={stage.name: type(stage).outputs.shown(stage) for stage in pipeline.stages},
        # Airflow's assets are single values.
        written={
            stage.name: type(stage).outputs.written(stage) if stage.for_each is None else ()
            for stage in pipeline.stages
        },
        conditions={
            name: unit.shared if isinstance(unit, Group) else conditions[name]
            for name, unit in units.items()
        },
        aliases={
            name: outputs
            for unit in units.values()
            if isinstance(unit, Group)
            for name, outputs in unit.aliases.items()
        },
    )
    if wrong := list(_skipped_looks(lowered)):
        raise PipelineError(wrong)
    return lowered


def _concluded(conclusion: Conclusion, graph: Graph, read: Mapping[str, frozenset[str]]) -> Settled:
    """Return a graph with the stages after its end."""
    stages = concluding.last_stages(conclusion.pipeline)
    names = {stage.name for stage in stages}
    direct = {stage.name: needs(stage) & names for stage in stages}
    if members := circle(direct):
        message = f"stages wait for each other: {' -> '.join(members)}"
        raise PipelineError([Problem("", message, stage=members[0])])
    context = concluding.context(conclusion.pipeline.context())
    lowerings = _lowerings({stage.name: stage for stage in stages}, context, read)
    lowered = fragments(lowerings, direct)
    if wrong := list(conclusion.problems(lowered)):
        raise PipelineError(wrong)
    return conclusion.around(graph, lowered, direct)


def _units(pipeline: Description, conditions: Mapping[str, Conditions]) -> dict[str, Stage | Group]:
    """Return the ordinary stages, those that run together as groups."""
    found: dict[str, Stage | Group] = {}
    for name, members in groups.units(pipeline.stages).items():
        loop = members[0].for_each
        if loop is None or loop.together is None:
            found[name] = members[0]
        else:
            own = {stage.name: conditions[stage.name] for stage in members}
            outside = groups.read_outside(members, pipeline.every_stage)
            found[name] = Group(name, members, loop, own, outside)
    return found


def _lowerings(
    units: Mapping[str, Stage | Group], context: Context, read: Mapping[str, frozenset[str]]
) -> dict[str, Lowering]:
    return {
        name: partial(unit.lowered, context)
        if isinstance(unit, Group)
        else partial(of_stage, unit, context, read[name])
        for name, unit in units.items()
    }


def _between(
    stages: Sequence[Stage], waits: Callable[[Stage], frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return for which others each stage waits, or each group of some."""
    unit = {stage.name: groups.unit_of(stage) for stage in stages}
    found: dict[str, set[str]] = {name: set() for name in unit.values()}
    for stage in stages:
        own = unit[stage.name]
        others = {unit[name] for name in waits(stage)}
        found[own] |= others if own == stage.name else others - {own}
    return {name: frozenset(others) for name, others in found.items()}


def _parameters(
    pipeline: Description, graph: Graph, others: Iterable[Tree]
) -> tuple[ParameterSpec, ...]:
    """Return the parameters of runs; ``role`` is required if declared so, or if a stage uses it."""
    used = {
        node.name
        for tree in (*others, *(tree for step in all_steps(graph) for tree in trees(step)))
        for node in walk(tree)
        if isinstance(node, Parameter)
    }
    uris = {*_uris(graph)}
    specs = tuple(replace(s, uri=s.name in uris) for s in pipeline.possible_parameters())
    if ROLE in pipeline.parameters or ROLE in used:
        return specs
    # Whoever starts many pipelines alike may give it all the same.
    return tuple(replace(spec, default="") if spec.name == ROLE else spec for spec in specs)


def _uris(graph: Graph) -> Iterator[str]:
    """Yield the parameters that each run reads as S3 URIs, or as the beginnings of such."""
    for step in always(graph):
        own = [
            node.arguments[0]
            for tree in trees(step)
            for node in walk(tree)
            if isinstance(node, Apply) and node.function in _PARTS_OF_URI
        ]
        asked = step.operation.request if isinstance(step, Call) else {}
        for uri in (*own, *_uris_of_request(asked)):
            if isinstance(uri, Apply) and uri.function is Function.DIRECTORY:
                [uri] = uri.arguments
            begin = uri.parts[0] if isinstance(uri, Join) else uri
            if isinstance(begin, Parameter):
                yield begin.name


def _uris_of_request(request: Tree) -> Iterator[Tree]:
    """Yield the values of a request's fields that hold S3 URIs."""
    if isinstance(request, Mapping):
        for name, value in request.items():
            if _S3_FIELD.search(name):
                yield value
            else:
                yield from _uris_of_request(value)
    elif isinstance(request, list | tuple):
        for value in request:
            yield from _uris_of_request(value)


def _skipped_looks(lowered: Lowered) -> Iterator[Problem]:
    """Yield the stages that decide whether a run goes on, and that it may skip."""
    for name, fragment in lowered.fragments.items():
        if fragment.look is not None and lowered.conditions[name]:
            message = (
                "unless_unchanged: end_run is decided before any condition; remove the one or the "
                "other"
            )
            yield Problem("when", message, stage=name)


def of_requests(draft: Draft, found: Sequence[Problem]) -> list[Problem]:
    """Return what AWS would refuse of the stages that have no other errors."""
    wrong_stages = {problem.stage for problem in found}
    context = draft.context({problem.field for problem in found if problem.stage is None})
    problems: list[Problem] = []
    for written in draft.stages:
        if written.stage is not None and written.name not in wrong_stages:
            fragment, wrong = of_stage(written.stage, context)
            problems += wrong
            guard, look = fragment.guard, fragment.look
            more = () if guard is None else (guard.acquire, *guard.cleanup.steps)
            more = (*more, *(() if look is None else look.steps))
            workflow = Workflow(name=draft.name, graph=Graph((*fragment.steps, *more)))
            problems += [_in_stage(problem) for problem in rules.requests(workflow)]
    return problems


def _in_stage(problem: Problem) -> Problem:
    """The problem of a step as one of its stage."""
    if problem.step is None:
        return Problem(problem.field or "stages", problem.message)
    message = f"{problem.field}: {problem.message}" if problem.field else problem.message
    return Problem("", message, stage=stage_of(problem.step))


def needs(stage: Stage) -> frozenset[str]:
    """The stages that a stage waits for."""
    return looping.reading(stage).union(stage.after)


def _inverted(reading: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The stages that read each stage."""
    readers: dict[str, set[str]] = {name: set() for name in reading}
    for reader, names in reading.items():
        for name in names:
            readers[name].add(reader)
    return {name: frozenset(names) for name, names in readers.items()}
