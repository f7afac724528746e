"""Stages as fragments of a graph: each lowered, checked, and waiting for those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from orchestration.checks.references import outputs_of
from orchestration.errors import PipelineError, Problem, near
from orchestration.expressions import Result, walk
from orchestration.graph import Graph, all_steps, stage_of, upstream
from orchestration.graph.ordering import layered
from orchestration.pipeline import looping
from orchestration.pipeline.placing import timing
from orchestration.pipeline.placing.acquiring import waiting_inside
from orchestration.pipeline.placing.placement import leaves
from orchestration.stages import Context, Fragment, Stage

_UNTAGGED: Final = (
    "nothing that this stage creates takes tags from here; remove them, or see the stage's own "
    "fields (`request` of aws_call, `tags` of an S3 destination)"
)

Lowering: TypeAlias = Callable[[], tuple[Fragment, list[Problem]]]
"""The lowering of a stage, or of a group of some: its fragment, and what is wrong with it."""


def fragments(
    lowerings: Mapping[str, Lowering], direct: Mapping[str, frozenset[str]]
) -> dict[str, Fragment]:
    """Return lowered stages, each after those that it waits for; ``direct`` says for which."""
    lowered: dict[str, Fragment] = {}
    ends: dict[str, tuple[str, ...]] = {}
    wrong: list[Problem] = []
    for name in layered(direct):
        fragment, malformed = lowerings[name]()
        wrong += malformed
        done = tuple(end for earlier in sorted(direct[name]) for end in ends[earlier])
        before = upstream(Graph(fragment.steps))
        lowered[name] = _entered(fragment, before, done)
        ends[name] = leaves(fragment, before)
    if wrong:
        raise PipelineError(wrong)
    return lowered


def of_stage(
    stage: Stage, context: Context, read: frozenset[str] | None = None
) -> tuple[Fragment, list[Problem]]:
    """Lower a stage, to a loop where it has a ``for_each`` of its own.

    ``read`` are the outputs that something reads; ``None``: all of them.
    """
    if stage.for_each is None:
        fragment, problems = once(stage, context)
    else:
        fragment, problems = once(stage, looping.inside(context, stage.for_each))
        shown = sorted(fragment.outputs if read is None else read)
        fragment, wrong = looping.looped(stage, fragment, shown)
        problems = [*problems, *wrong]
    fragment, late = timing.timed(stage, fragment)
    return fragment, [*problems, *late]


def once(stage: Stage, context: Context) -> tuple[Fragment, list[Problem]]:
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
