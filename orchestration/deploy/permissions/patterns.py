"""Patterns of requests, as far as they are known before any run: text with wildcards.

Derived names begin with a constant prefix (``digits-train-``), so a wildcard at their end is as
narrow as a policy can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestration.expressions import (
    Apply,
    Best,
    Field,
    Function,
    Item,
    Join,
    Json,
    Parameter,
    Result,
    Tree,
)
from orchestration.expressions.scalars import text
from orchestration.graph import (
    Call,
    Choose,
    ForEach,
    Graph,
    Operation,
    Read,
    Step,
    Until,
    all_steps,
)
from orchestration.refs import Expression

ANY = "\0"
"""Stands for any text; no AWS name holds it."""
_PACKAGE = "ModelPackageArn"
_BEST = ("best",)
"""The place of the best model in the verdict of an evaluation."""
_SOME_OF = (Function.NUMBERED, Function.WHERE, Function.PICKED, Function.TOP)
"""The functions that return some elements of a list."""
_PACKAGES = ("CreateModelPackage", "ListModelPackages")
_CHECKPOINTS = "CheckpointConfig"
_PLACES: Mapping[tuple[str | int, ...], tuple[str, str]] = {
    ("ModelArtifacts", "S3ModelArtifacts"): ("OutputDataConfig", "S3OutputPath"),
    (_CHECKPOINTS, "S3Uri"): (_CHECKPOINTS, "S3Uri"),
}
"""The fields of a request that say where a training job writes, by the paths in its description."""
_SEARCHES = ("CreateHyperParameterTuningJob", "ListTrainingJobsForHyperParameterTuningJob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Knowledge about the runs that a policy must allow."""

    parameters: Mapping[str, Json]
    listings: Mapping[str, Tree]
    """The prefix of each listing of S3: every key that it returns begins with it."""
    items: Tree = None
    """The list that the enclosing loop goes over."""
    steps: Mapping[str, Step] = field(default_factory=dict)
    """Steps by name: what one gives, others read."""
    sagemaker: str = ANY
    """The beginning of the ARNs of SageMaker's resources in the account."""
    missing: set[str] = field(default_factory=set)
    """Parameters that were read and have no value; they match any text."""

    def inside(self, items: Tree) -> Known:
        """Return the knowledge inside a loop over a list."""
        return replace(self, items=items)


def listings(graph: Graph) -> dict[str, Tree]:
    """Return the prefixes of a graph's listings, by step."""
    return {
        step.name: step.operation.request.get("Prefix", "")
        for step in all_steps(graph)
        if isinstance(step, Call)
        and (step.operation.service, step.operation.name) == ("s3", "ListObjectsV2")
    }


def pattern(tree: Tree, known: Known) -> str:
    """Return the text of a tree, with :data:`ANY` for parts that only a run knows."""
    match tree:
        case Join(parts):
            return "".join(pattern(part, known) for part in parts)
        case Parameter(name):
            return _parameter(name, known)
        case Field(Item(), "Key" | "Prefix"):
            return _listed(known)
        case Field(of, key):
            return _collected(of, key, known)
        case Result(step, output):
            return _written(known.steps.get(step), output, known)
        case Apply(function, arguments):
            return _applied(function, arguments, known)
        case Expression():
            return ANY
        case None:
            return ""
        case bool() | int() | float() | str():
            return text(tree)
        case _:
            return ANY


def iam(pattern: str) -> str:
    """Write the pattern for IAM, with wildcards in the text itself escaped.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#policy-vars-specialchars

    >>> iam("data/a*b/" + ANY)
    'data/a${*}b/*'
    """
    while ANY * 2 in pattern:
        pattern = pattern.replace(ANY * 2, ANY)
    escaped = "".join(f"${{{c}}}" if c in "*?$" else c for c in pattern)
    return escaped.replace(ANY, "*")


def _parameter(name: str, known: Known) -> str:
    if name not in known.parameters:
        known.missing.add(name)
        return ANY
    value = known.parameters[name]
    return ANY if value is None else pattern(value, known)


def _listed(known: Known) -> str:
    """Return the key of an element of a listing, or of what was taken from one."""
    match known.items:
        case Result(step) if step in known.listings:
            return pattern(known.listings[step], known) + ANY
        case Apply(function, (items, *_)) if function in _SOME_OF:
            return _listed(known.inside(items))
        case Result(step, "items"):
            return _collected(known.items, "Prefix", known)
        case _:
            return ANY


def _judged(request: Step | None, known: Known) -> str:
    """Return the place of a model that a verdict names: one of those that its job was told of."""
    match request.operation.request.get("Body") if isinstance(request, Call) else None:
        case {"bucket": bucket, "checkpoints": each}:
            return f"s3://{pattern(bucket, known)}/{_listed(known.inside(each))}"
        case {"models": each}:
            return _collected(each, "model", known)
        case _:
            return ANY


def _collected(of: Tree, key: str, known: Known) -> str:
    """Return a field of an element that a loop collected, whichever element it is."""
    match of:
        case Item():
            return ANY if known.items is None else _collected(known.items, key, known)
        case Best(items):
            return _collected(items, key, known)
        case Apply(function, (items, *_)) if function in _SOME_OF:
            return _collected(items, key, known)
        case Result(name, "items"):
            step = known.steps.get(name)
            if isinstance(step, ForEach) and key in step.collect:
                return pattern(step.collect[key], known.inside(step.items))
            return ANY
        case Result(name) if key == _PACKAGE:
            return _version(known.steps.get(name), known)
        case _:
            return ANY


def _written(step: Step | None, output: str, known: Known) -> str:
    """Return the text of an output: where a job wrote, an endpoint's ARN, a choice or verdict."""
    match step:
        case Call(until=Until(outputs=outputs)) if output in outputs:
            if outputs[output].path in _PLACES:
                return _below(step.operation.request, outputs[output].path, known)
            if outputs[output].path == ("EndpointArn",):
                # SageMaker writes names in small letters there.
                name = pattern(step.operation.request.get("EndpointName"), known).lower()
                return f"{known.sagemaker}:endpoint/{name}"
            return ANY
        case Call(outputs=outputs) if output in outputs and outputs[output].path in _PLACES:
            asked = step.operation.request.get("TrainingJobName")
            return _below(_training(asked, known), outputs[output].path, known)
        case Call(outputs=outputs) if output in outputs:
            return _version(step, known) if _PACKAGE in outputs[output].path else ANY
        case Read(name=name, outputs=outputs) if output in outputs:
            if outputs[output].path != _BEST:
                return ANY
            return _judged(known.steps.get(f"{name.rpartition('.')[0]}.request"), known)
        case Choose(collect=collect, absent=absent) if output in collect:
            either = {pattern(collect[output], known), pattern(absent.get(output), known)} - {""}
            return either.pop() if len(either) == 1 else ANY
        case _:
            return ANY


def _version(step: Step | None, known: Known) -> str:
    """Return the ARN of a version of the group that a request names, by name or as an ARN."""
    if not isinstance(step, Call) or step.operation.name not in _PACKAGES:
        return ANY
    group = pattern(step.operation.request.get("ModelPackageGroupName"), known)
    whole = group.replace(":model-package-group/", ":model-package/")
    if group.startswith("arn:"):
        return f"{whole}/{ANY}" if whole != group else ANY
    return ANY if group.startswith(ANY) else f"{known.sagemaker}:model-package/{group}/{ANY}"


def _below(request: Mapping[str, Tree], path: tuple[str | int, ...], known: Known) -> str:
    """Return the places below the one that the request of a training job names for an output."""
    block, name = _PLACES[path]
    config = request.get(block)
    place = config.get(name) if isinstance(config, Mapping) else None
    if place is None:
        return ANY
    # Whether a search gives each of its jobs a folder of their own for checkpoints is not verified.
    end = "" if block == _CHECKPOINTS else "/"
    return pattern(place, known).removesuffix("/") + end + ANY


def _training(name: Tree, known: Known) -> Mapping[str, Tree]:
    """Return the request that defines a training job, or each one of a search; empty: unknown."""
    match name:
        case Field(Item()):
            return {} if known.items is None else _training(known.items, known)
        case Result(step, output):
            return _defined(known.steps.get(step), output, known)
        case _:
            return {}


def _defined(step: Step | None, output: str, known: Known) -> Mapping[str, Tree]:
    match step:
        case Choose(collect=collect, absent=absent) if output in collect:
            either = _training(collect[output], known), _training(absent.get(output), known)
            return either[0] if either[0] == either[1] else {}
        case Call(operation=Operation(name="CreateTrainingJob", request=request)):
            return request
        case Call(operation=Operation(name=called, request=request)) if called in _SEARCHES:
            search = request.get("HyperParameterTuningJobName")
            definition = request.get("TrainingJobDefinition")
            return definition if isinstance(definition, Mapping) else _training(search, known)
        case _:
            return {}


def _applied(function: Function, arguments: Sequence[Tree], known: Known) -> str:
    match function:
        case Function.S3_BUCKET:
            return s3(pattern(arguments[0], known))[0]
        case Function.S3_KEY:
            return s3(pattern(arguments[0], known))[1]
        case Function.URL_PATH | Function.TEXT:
            # IAM compares the key itself, not its encoding in a header.
            return pattern(arguments[0], known)
        case Function.DIRECTORY:
            return pattern(arguments[0], known).removesuffix("/") + "/"
        case Function.LISTED if arguments[1] == _PACKAGE:
            return _collected(arguments[0], _PACKAGE, known)
        case _:
            return ANY


def s3(uri: str) -> tuple[str, str]:
    """Split the pattern of an S3 URI into those of its bucket and key."""
    if not uri.startswith("s3://"):
        return ANY, ANY
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    # Any text may contain slashes: then the key begins inside it.
    return (bucket, ANY + key) if ANY in bucket else (bucket, key)
