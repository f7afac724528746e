"""A pipeline of one stage, with data of this machine in the place of what other stages make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.errors import ExpressionError, PipelineError, Problem, near
from orchestration.expressions import Json, Run, evaluate, walk
from orchestration.expressions.evaluate import Values
from orchestration.expressions.nodes import substitute
from orchestration.local.scripts.inputs import (
    Input,
    from_s3,
    inputs,
    with_input,
    without_surroundings,
)
from orchestration.pipeline import Pipeline
from orchestration.refs import Each, Expression, Parameter, Ref, RunAttempt
from orchestration.stages import Stage
from orchestration.stages.assuming import replacing
from orchestration.stages.staging import DataStaging

BUCKET: Final = "check-script"
"""The bucket of data and results, in an account of the check's own."""
_ROLE: Final = "arn:aws:iam::123456789012:role/CheckScript"
_REGION: Final = "us-east-1"

_LATER: Final = (Ref, Parameter, Run, RunAttempt)
"""Values that only the run of the stage has, or nobody."""

Outputs = Mapping[str, Mapping[str, Json]]
"""Outputs of stages, by stage and name."""


@dataclass(frozen=True, slots=True)
class Alone:
    """A stage by itself."""

    pipeline: Pipeline
    stage: Stage
    inputs: tuple[Input, ...]


def alone(
    pipeline: Pipeline,
    name: str,
    *,
    channels: Mapping[str, str],
    parameters: Mapping[str, Json],
    outputs: Outputs,
) -> Alone:
    """Return a pipeline that runs one stage of another, and nothing else.

    ``channels`` are the S3 URIs of its inputs, by name; ``outputs`` those that are known of other
    stages. A copy by a staging stage is read where it is copied from.

    Raises :class:`~orchestration.errors.PipelineError` with everything that it reads and nobody
    gives, and for a stage without a script.
    """
    stages = {stage.name: stage for stage in pipeline.every_stage}
    if name not in stages:
        raise PipelineError([Problem("stages", f"there is no stage {name!r}{near(name, stages)}")])
    element = _first_element(stages[name], parameters)
    stage = from_s3(without_surroundings(stages[name]), stages)
    known = [each.name for each in inputs(stage)]
    wrong = [
        Problem("", f"has no input {given!r}{near(given, known)}; it has {', '.join(known)}")
        for given in channels
        if given not in known
    ]
    for given in known:
        if given in channels:
            stage = with_input(stage, given, channels[given])
    stage = replacing(stage, _Known(stages, parameters, outputs, element))
    wrong += _unknown(stage)
    if wrong:
        raise PipelineError(Problem(p.field, p.message, stage=name) for p in wrong)
    made = Pipeline(
        name=pipeline.name,
        workspace=f"s3://{BUCKET}/{pipeline.name}",
        role=_ROLE,
        region=pipeline.region or _REGION,
        stages=(stage,),
    )
    return Alone(made, stage, inputs(stage))


def _first_element(stage: Stage, parameters: Mapping[str, Json]) -> Json:
    """Return the first element of the list that a stage goes through; ``None`` without a list."""
    if stage.for_each is None:
        return None
    items = stage.for_each.items
    known = parameters.get(items.name) if isinstance(items, Parameter) else items
    if isinstance(known, list | tuple) and known:
        first: Json = known[0]
        return first
    way = f"give -p {items.name}=[…]" if isinstance(items, Parameter) else "write the list there"
    message = f"no element is known, and a check takes the first one; {way}"
    raise PipelineError([Problem("for_each.items", message, stage=stage.name)])


@dataclass(frozen=True, slots=True)
class _Known:
    """The values that are known before a run: parameters, and outputs of other stages."""

    stages: Mapping[str, Stage]
    parameters: Mapping[str, Json]
    outputs: Outputs
    element: Json
    """The element that a stage in a loop is checked with."""

    def __call__(self, value: Expression[Any]) -> Any:
        """Return an expression with what is known in it; as a value where all of it is."""
        try:
            found = substitute(value, self._leaf)
        except ExpressionError:
            return value
        if isinstance(found, Expression) and not any(isinstance(n, _LATER) for n in walk(found)):
            return evaluate(found, Values({}, {}))
        return found

    def _leaf(self, leaf: Expression[object]) -> Any:
        if isinstance(leaf, Parameter):
            return self.parameters.get(leaf.name, leaf)
        if isinstance(leaf, Each) and self.element is not None:
            return self.element[leaf.field] if isinstance(self.element, dict) else self.element
        return self._output(leaf) if isinstance(leaf, Ref) else leaf

    def _output(self, ref: Ref[Any]) -> Any:
        written, stage = self.outputs.get(ref.stage, {}), self.stages.get(ref.stage)
        if ref.output in written:
            return written[ref.output]
        if isinstance(stage, DataStaging):
            same: object = stage.source if ref.output == "location" else None
        else:
            same = None if stage is None else type(stage).outputs.repeated(stage, ref.output)
        if same is None:
            return ref
        return self(same) if isinstance(same, Expression) else same


def _unknown(stage: Stage) -> Iterator[Problem]:
    """Yield what a stage reads that nobody gives."""
    wanted = {each.field: each.name for each in inputs(stage)}
    for path, node in stage.references():
        channel = next((name for field, name in wanted.items() if path.startswith(field)), None)
        if isinstance(node, Parameter):
            yield Problem(path, f"reads a parameter without a value; give -p {node.name}=…")
        elif isinstance(node, Ref):
            folder = "" if channel is None else f", or give a folder: --channel {channel}=DIR"
            yield Problem(
                path, f"reads {node.stage}.{node.output}; check {node.stage} first{folder}"
            )
    for each in inputs(stage):
        if each.uri is None:
            message = f"is not in S3; give a folder in its place: --channel {each.name}=DIR"
            yield Problem(each.field, message)
