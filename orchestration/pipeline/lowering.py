"""From stages to one step graph: references resolved, gates and guards in their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestration.checks import rules
from orchestration.checks.references import outputs_of
from orchestration.errors import PipelineError, Problem, near
from orchestration.expressions import Parameter, Result, Tree, walk
from orchestration.graph import (
    Graph,
    ParameterSpec,
    Workflow,
    all_steps,
    stage_of,
    trees,
    upstream,
)
from orchestration.graph.ordering import circle, layered
from orchestration.pipeline import looping
from orchestration.pipeline.afterwards import concluding, reading
from orchestration.pipeline.afterwards.concluding import Conclusion, Reads
from orchestration.pipeline.description import ROLE, Description
from orchestration.pipeline.draft import Draft
from orchestration.pipeline.placing import timing
from orchestration.pipeline.placing.acquiring import waiting_inside
from orchestration.pipeline.placing.lowered import Lowered
from orchestration.pipeline.placing.placement import Placement, Settled, leaves
from orchestration.pipeline.problems import problems
from orchestration.pipeline.unchanged import Ending
from orchestration.refs import Ref
from orchestration.stages import Context, Fragment, Stage

_UNTAGGED = (
    "nothing that this stage creates takes tags from here; remove them, or see the stage's own "
    "fields (`request` of aws_call, `tags` of an S3 destination)"
)


def lower(pipeline: Description) -> Workflow:
    """The pipeline as a workflow, or a :class:`PipelineError` with everything that is wrong."""
    draft = Draft.of(pipeline)
    found = problems(draft)
    if found:
        raise PipelineError([*found, *of_requests(draft, found)])
    needed = {stage.name: _reading(stage) for stage in pipeline.stages}
    direct = {stage.name: needed[stage.name].union(stage.after) for stage in pipeline.stages}
    if members := circle(direct):
        message = f"stages wait for each other: {' -> '.join(members)}"
        raise PipelineError([Problem("stages", message)])
    conditions = reading.conditions(draft.stages)
    read = looping.outputs_read(pipeline.every_stage)
    lowered = Lowered(
        fragments=_fragments(pipeline.stages, pipeline.context(), direct, read),
        direct=direct,
        readers=_inverted(needed),
        shown={stage.name: type(stage).outputs.shown(stage) for stage in pipeline.stages},
        # Airflow's assets are single values.
        written={
            stage.name: type(stage).outputs.written(stage) if stage.for_each is None else ()
            for stage in pipeline.stages
        },
        conditions={stage.name: conditions[stage.name] for stage in pipeline.stages},
    )
    if wrong := list(_skipped_looks(lowered)):
        raise PipelineError(wrong)
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
        notify=None if pipeline.notify is None else pipeline.notify.spec(),
        tags=pipeline.tags,
        integrations=pipeline.integrations(),
        airflow=pipeline.airflow_settings(),
        region=pipeline.region,
        written=settled.written,
        permissions=permissions,
    )
    if wrong := rules.problems(workflow):
        raise PipelineError([_in_stage(problem) for problem in wrong])
    return workflow


def _concluded(conclusion: Conclusion, graph: Graph, read: Mapping[str, frozenset[str]]) -> Settled:
    """Return a graph with the stages after its end."""
    stages = concluding.last_stages(conclusion.pipeline)
    names = {stage.name for stage in stages}
    direct = {stage.name: needs(stage) & names for stage in stages}
    if members := circle(direct):
        message = f"stages wait for each other: {' -> '.join(members)}"
        raise PipelineError([Problem("", message, stage=members[0])])
    context = concluding.context(conclusion.pipeline.context())
    fragments = _fragments(stages, context, direct, read)
    if wrong := list(conclusion.problems(fragments)):
        raise PipelineError(wrong)
    return conclusion.around(graph, fragments, direct)


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
    specs = pipeline.possible_parameters()
    if ROLE in pipeline.parameters or ROLE in used:
        return specs
    # Whoever starts many pipelines alike may give it all the same.
    return tuple(replace(spec, default="") if spec.name == ROLE else spec for spec in specs)


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
            fragment, wrong = _lowered(written.stage, context)
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
    return _reading(stage).union(stage.after)


def _reading(stage: Stage) -> frozenset[str]:
    """The stages whose outputs a stage reads."""
    return frozenset(node.stage for _, node in stage.references() if isinstance(node, Ref))


def _inverted(reading: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The stages that read each stage."""
    readers: dict[str, set[str]] = {name: set() for name in reading}
    for reader, names in reading.items():
        for name in names:
            readers[name].add(reader)
    return {name: frozenset(names) for name, names in readers.items()}


def _fragments(
    listed: Sequence[Stage],
    context: Context,
    direct: Mapping[str, frozenset[str]],
    read: Mapping[str, frozenset[str]],
) -> dict[str, Fragment]:
    """The stages lowered, each after those that it waits for."""
    stages = {stage.name: stage for stage in listed}
    fragments: dict[str, Fragment] = {}
    ends: dict[str, tuple[str, ...]] = {}
    wrong: list[Problem] = []
    for name in layered(direct):
        fragment, malformed = _lowered(stages[name], context, read[name])
        wrong += malformed
        done = tuple(end for earlier in sorted(direct[name]) for end in ends[earlier])
        before = upstream(Graph(fragment.steps))
        fragments[name] = _entered(fragment, before, done)
        ends[name] = leaves(fragment, before)
    if wrong:
        raise PipelineError(wrong)
    return fragments


def _lowered(
    stage: Stage, context: Context, read: frozenset[str] | None = None
) -> tuple[Fragment, list[Problem]]:
    """Lower a stage, to a loop where it has ``for_each``.

    ``read`` are the outputs that something reads; ``None``: all of them.
    """
    if stage.for_each is None:
        fragment, problems = _once(stage, context)
    else:
        fragment, problems = _once(stage, looping.inside(context, stage.for_each))
        shown = sorted(fragment.outputs if read is None else read)
        fragment, wrong = looping.looped(stage, fragment, shown)
        problems = [*problems, *wrong]
    fragment, late = timing.timed(stage, fragment)
    return fragment, [*problems, *late]


def _once(stage: Stage, context: Context) -> tuple[Fragment, list[Problem]]:
    """Lower a stage; whatever its kind does wrong belongs to it, wherever the kind comes from."""
    kind = type(stage).__name__
    try:
        fragment = stage.lower(context.tagged(stage.tags))
    except Exception as error:
        error.add_note(f"while stage {stage.name!r}, a {kind}, was lowered")
        raise
    if not isinstance(fragment, Fragment):
        raise TypeError(f"{kind}.lower returned {fragment!r:.60}, not a Fragment")
    declared = type(stage).outputs.of(stage)
    missing = [name for name in declared if name not in fragment.outputs]
    messages = [
        f"{kind} declares output {name!r}, and lower() gives no value for it" for name in missing
    ]
    messages += [
        f"{kind}.lower() gives a value for {name!r}, which is none of its outputs"
        for name in fragment.outputs
        if name not in declared
    ]
    if stage.tags and fragment == stage.model_copy(update={"tags": {}}).lower(context):
        return fragment, [Problem("tags", _UNTAGGED, stage=stage.name)]
    messages += [
        f"{kind} names a step {step.name!r}; begin the name with that of the stage: "
        f"{stage.name}.{step.name}"
        for step in all_steps(Graph(fragment.steps))
        if stage_of(step.name) != stage.name
    ]
    messages += _unread(stage.name, fragment)
    # So that the stages that read them are looked at as well.
    whole = replace(fragment, outputs={**fragment.outputs, **dict.fromkeys(missing, "")})
    wrong = [Problem("", message) for message in messages]
    if stage.retry is not None:
        steps, obstacles = stage.retry.applied(whole.steps)
        whole, wrong = replace(whole, steps=steps), [*obstacles, *wrong]
    return waiting_inside(whole), [replace(problem, stage=stage.name) for problem in wrong]


def _unread(stage: str, fragment: Fragment) -> Iterator[str]:
    """Yield the outputs that read what no step of the stage gives."""
    guard, look = fragment.guard, fragment.look
    more = () if guard is None else (guard.acquire, *guard.cleanup.steps, *guard.saving.steps)
    more = (*more, *(() if look is None else look.steps))
    steps = {step.name: outputs_of(step) for step in all_steps(Graph((*fragment.steps, *more)))}
    for name, value in fragment.outputs.items():
        for node in walk(value):
            if not isinstance(node, Result) or stage_of(node.step) != stage:
                continue
            if node.step not in steps:
                yield f"output {name!r} reads {node.step}, which is no step of it" + near(
                    node.step, steps
                )
            elif node.output not in steps[node.step]:
                yield (
                    f"output {name!r} reads {node.step}.{node.output}, which that step does not "
                    f"give{near(node.output, steps[node.step])}"
                )


def _entered(
    fragment: Fragment, before: Mapping[str, frozenset[str]], done: tuple[str, ...]
) -> Fragment:
    """The fragment with its first steps waiting for the stages before it to be over."""
    if not done:
        return fragment
    if fragment.guard is not None:
        guard = fragment.guard
        if guard.clock is not None:
            return replace(fragment, guard=replace(guard, clock=replace(guard.clock, after=done)))
        return replace(fragment, guard=replace(guard, acquire=replace(guard.acquire, after=done)))
    steps = tuple(
        step if before[step.name] else replace(step, after=(*step.after, *done))
        for step in fragment.steps
    )
    return replace(fragment, steps=steps)
