"""From stages to one step graph: references resolved, gates and guards in their places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from orchestration.checks import rules
from orchestration.errors import ExpressionError, PipelineError, Problem
from orchestration.expressions import Tree, substitute
from orchestration.graph import Call, Graph, Workflow, rewrite, upstream
from orchestration.pipeline.draft import Draft
from orchestration.pipeline.plan import leaves, plan
from orchestration.pipeline.problems import problems
from orchestration.refs import Expression, Ref
from orchestration.stages import Fragment, Stage

if TYPE_CHECKING:
    from orchestration.pipeline.model import Pipeline


def lower(pipeline: Pipeline) -> Workflow:
    """The pipeline as a workflow, or a :class:`PipelineError` with everything that is wrong."""
    draft = Draft.of(pipeline)
    found = problems(draft)
    if found:
        raise PipelineError([*found, *of_requests(draft, found)])
    if cycle := _cycle(pipeline.stages):
        raise PipelineError([cycle])
    placed = plan(
        _fragments(pipeline),
        {stage.name: needs(stage) for stage in pipeline.stages},
        _readers(pipeline.stages),
    )
    workflow = Workflow(
        name=pipeline.name,
        description=pipeline.description,
        parameters=pipeline.parameter_specs(),
        graph=placed.graph(placed.order),
        outputs=placed.outputs(),
        schedule=pipeline.schedule_spec(),
    )
    if wrong := rules.problems(workflow):
        raise PipelineError([_in_stage(problem) for problem in wrong])
    return workflow


def of_requests(draft: Draft, found: Iterable[Problem]) -> list[Problem]:
    """What AWS would refuse of the stages that nothing else was found wrong with."""
    wrong = {".".join(problem.path.split(".")[:2]) for problem in found}
    context = draft.context(wrong)
    result: list[Problem] = []
    for written in draft.stages:
        if written.stage is not None and f"stages.{written.name}" not in wrong:
            fragment = written.stage.lower(context)
            guard = fragment.guard
            more = () if guard is None else (guard.acquire, *guard.cleanup.steps)
            workflow = Workflow(name=draft.name, graph=Graph((*fragment.steps, *more)))
            result += [_in_stage(problem) for problem in rules.requests(workflow)]
    return result


def _in_stage(problem: Problem) -> Problem:
    if not problem.path:
        return Problem("stages", problem.message)
    stage, _, rest = problem.path.partition(".")
    # "job: sagemaker:CreateTrainingJob InputDataConfig" is the step, the service and the operation.
    place = re.sub(r"^\S+: [a-z0-9-]+:", "", rest)
    message = problem.message
    return Problem(f"stages.{stage}", f"{place}: {message}" if place else message)


def needs(stage: Stage) -> frozenset[str]:
    """The stages that a stage waits for."""
    referred = {node.stage for _, node in stage.references() if isinstance(node, Ref)}
    return frozenset(referred | set(stage.after))


def _readers(stages: Iterable[Stage]) -> dict[str, frozenset[str]]:
    read = {
        stage.name: {node.stage for _, node in stage.references() if isinstance(node, Ref)}
        for stage in stages
    }
    return {name: frozenset(other for other in read if name in read[other]) for name in read}


def _cycle(stages: Iterable[Stage]) -> Problem | None:
    left = {stage.name: needs(stage) for stage in stages}
    while ready := {name for name, before in left.items() if not before & left.keys()}:
        left = {name: before for name, before in left.items() if name not in ready}
    if not left:
        return None
    path = [min(left)]
    while True:
        following = min(left[path[-1]] & left.keys())
        if following in path:
            members = [*path[path.index(following) :], following]
            return Problem("stages", f"stages wait for each other: {' -> '.join(members)}")
        path.append(following)


def _order(stages: Iterable[Stage]) -> list[Stage]:
    left = list(stages)
    order: list[Stage] = []
    while left:
        done = {stage.name for stage in order}
        order += [stage for stage in left if needs(stage) <= done]
        left = [stage for stage in left if stage not in order]
    return order


def _fragments(pipeline: Pipeline) -> dict[str, Fragment]:
    """The stages lowered, each after those that it needs."""
    fragments: dict[str, Fragment] = {}
    wrong: list[Problem] = []
    for stage in _order(pipeline.stages):
        fragment = stage.lower(pipeline.context())
        try:
            fragment = _resolved(fragment, fragments)
        except ExpressionError as error:
            wrong.append(Problem(f"stages.{stage.name}", str(error)))
        done = tuple(leaf for name in sorted(needs(stage)) for leaf in leaves(fragments[name]))
        fragments[stage.name] = _entered(fragment, done)
    if wrong:
        raise PipelineError(wrong)
    return fragments


def _resolved(fragment: Fragment, known: Mapping[str, Fragment]) -> Fragment:
    def value(node: Expression[object]) -> Tree:
        if isinstance(node, Ref):
            return known[node.stage].outputs[node.output]
        return node

    def tree(old: Any) -> Any:
        return substitute(old, value)

    gate, guard = fragment.gate, fragment.guard
    if gate is not None:
        gate = replace(gate, condition=tree(gate.condition))
    if guard is not None:
        acquire = cast(Call, rewrite(guard.acquire, tree))
        cleanup = Graph(tuple(rewrite(step, tree) for step in guard.cleanup.steps))
        guard = replace(guard, acquire=acquire, cleanup=cleanup)
    return replace(
        fragment,
        steps=tuple(rewrite(step, tree) for step in fragment.steps),
        outputs=tree(fragment.outputs),
        gate=gate,
        guard=guard,
    )


def _entered(fragment: Fragment, done: tuple[str, ...]) -> Fragment:
    """The fragment with its first steps waiting for the stages before it to be over."""
    if not done:
        return fragment
    if fragment.guard is not None:
        acquire = replace(fragment.guard.acquire, after=done)
        return replace(fragment, guard=replace(fragment.guard, acquire=acquire))
    before = upstream(Graph(fragment.steps))
    steps = tuple(
        step if before[step.name] else replace(step, after=(*step.after, *done))
        for step in fragment.steps
    )
    return replace(fragment, steps=steps)
