"""Everything that is wrong with a pipeline beyond its types, with paths into the description."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from orchestration.checks import tags
from orchestration.errors import Problem, near
from orchestration.expressions import Item, Parameter, Result, walk
from orchestration.pipeline import looping
from orchestration.pipeline.afterwards import checking as afterwards
from orchestration.pipeline.conditions import checking as conditions
from orchestration.pipeline.draft import Draft, Written
from orchestration.pipeline.elements import groups
from orchestration.pipeline.triggers import checking as triggers
from orchestration.refs import Ref
from orchestration.stages import Stage
from orchestration.stages.assuming import assuming
from orchestration.stages.serving import archives
from orchestration.stages.serving.containers import SequenceFields
from orchestration.stages.values import Element, Scalar, Source, s3_problem

_ECR = re.compile(r"\d{12}\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com")
_MOST_IN_NAMES = 63 - len("--") - 12 - len("-b") - len("-99")
"""Characters of the pipeline's and a stage's name together: SageMaker's names have 63 at the most,
12 are the run's identity, a fallback cluster's job gets a letter, and one that a person starts anew
a number."""


def problems(draft: Draft) -> list[Problem]:
    """Everything that is wrong with what could be read."""
    parts = (
        _of_pipeline,
        _of_stages,
        conditions.problems,
        looping.problems,
        groups.problems,
        afterwards.problems,
        triggers.problems,
    )
    return [problem for part in parts for problem in part(draft)]


def _of_stages(draft: Draft) -> Iterator[Problem]:
    for name, count in Counter(written.name for written in draft.stages).items():
        if count > 1:
            yield Problem("", f"{count} stages have this name", stage=name)
    stages = {written.name: written for written in draft.stages}
    for written in draft.stages:
        for problem in filter(written.tells, _of_stage(written, stages, draft)):
            yield replace(problem, stage=written.name)
        if written.stage is not None:
            beside = written.stage.check_beside(_readable(draft))
            for problem in (
                *written.stage.check_readers(_readers(written.name, draft)),
                *beside,
            ):
                yield replace(problem, stage=written.name)


def _readable(draft: Draft) -> dict[str, Stage]:
    return {each.name: each.stage for each in draft.stages if each.stage is not None}


def _readers(name: str, draft: Draft) -> list[Stage]:
    return [
        other.stage
        for other in draft.stages
        if other.stage is not None
        and any(isinstance(node, Ref) and node.stage == name for _, node in other.references)
    ]


def _of_stage(written: Written, stages: Mapping[str, Written], draft: Draft) -> Iterator[Problem]:
    together = len(draft.name) + len(written.name)
    if together > _MOST_IN_NAMES:
        yield Problem(
            "name",
            f"has {together} characters together with the pipeline's name; the most is "
            f"{_MOST_IN_NAMES}, so that SageMaker's 63 hold both and the run's identity",
        )
    for path, node in written.references:
        if isinstance(node, Ref) and node.stage == written.name:
            yield Problem(path, "is an output of the stage itself, known only at its end")
        else:
            yield from _reference(path, node, stages, draft.parameters)
    for other in written.after:
        if other not in stages:
            yield Problem("after", f"there is no stage {other!r}{near(other, stages)}")
    if written.rest is not None:
        yield from _checked(written.rest, draft)
        yield from _tags(written.rest.tags)
        yield from archives.problems(written.rest, _readable(draft))
        for field, source in written.rest.sources():
            yield from _source(field, source)


def _image(stage: Stage, region: str | None) -> Iterator[Problem]:
    """Yield the error of an image in another region's ECR, which SageMaker refuses to pull.

    botocore's `ContainerDefinition.Image` documents it for models, and CreateModel answers "Cross
    region ECR image pulls are not allowed" (aws/sagemaker-pytorch-inference-toolkit#7); for
    CreateTrainingJob see aws-samples/mlops-amazon-sagemaker#9.
    """
    images = [("image", getattr(stage, "image", None))]
    if isinstance(stage, SequenceFields):
        images += [(f"{path}.image", container.image) for path, container in stage.others]
    for path, image in images:
        place = _ECR.match(image) if isinstance(image, str) else None
        if place is None or region is None or place["region"] == region:
            continue
        yield Problem(
            path,
            f"is in {place['region']}, but the pipeline runs in {region}, and SageMaker pulls "
            f"images from its own region only; copy the image there, or change the pipeline's "
            f"region",
        )


def _checked(stage: Stage, draft: Draft) -> Iterator[Problem]:
    """Yield the errors of a stage, also with the parameters at their defaults."""
    context = draft.context()
    found = [*stage.check(context), *_image(stage, draft.region)]
    yield from found
    by_default = assuming(stage, draft.defaults())
    if by_default is stage:
        return
    for problem in [*by_default.check(context), *_image(by_default, draft.region)]:
        if problem not in found:
            yield replace(problem, message=f"{problem.message} (so by the parameters' defaults)")


def _source(path: str, source: Source) -> Iterator[Problem]:
    ways = ("directory", "archive", "uri")
    ways_given = [name for name in ways if getattr(source, name) is not None]
    if len(ways_given) > 1:
        yield Problem(path, f"takes one of {' and '.join(ways_given)}; leave out the others")
    if source.runtime and (source.archive is not None or source.uri is not None):
        yield Problem(
            f"{path}.runtime",
            "is added while a directory is packed, and this code is packed already; remove it, and "
            "copy the runtime into the code with `orchestrate vendor-runtime DIRECTORY`",
        )
    for name in ("include", "dependencies"):
        if getattr(source, name) and source.directory is None:
            yield Problem(f"{path}.{name}", "is for a directory; remove it")
    yield from s3_problem(f"{path}.uri", source.uri)
    if isinstance(source.uri, str) and source.uri.endswith("/"):
        yield Problem(f"{path}.uri", "leave the slash at its end away")
    if len(ways_given) > 1 or source.uri is not None or source.sha256 is not None:
        return
    given = source.directory or source.archive
    if given is None:
        yield Problem(path, "needs a directory (a folder of code), an archive, or a uri in S3")
    elif source.archive is not None:
        yield Problem(
            f"{path}.archive",
            f"there is no file {source.archive}, and no lock file knows its digest; run "
            "`orchestrate lock FILE` where the file is",
        )
    elif not Path(given).is_dir():
        yield Problem(
            f"{path}.directory",
            f"there is no folder {source.directory}, and no lock file knows its digest; run "
            "`orchestrate lock FILE` where the folder is",
        )
    else:
        yield Problem(
            path,
            "the digest of its folder is not known; load the pipeline from its YAML file, or write "
            "Source(folder, entry_point=…) in Python",
        )


def _reference(
    path: str, node: object, stages: Mapping[str, Written], parameters: Mapping[str, object]
) -> Iterator[Problem]:
    match node:
        case Ref(stage, _) if stage not in stages:
            yield Problem(path, f"there is no stage {stage!r}{near(stage, stages)}")
        case Ref(stage, output):
            yield from _output(path, stages[stage], output)
        case Parameter(name) if name not in parameters:
            yield Problem(path, f"there is no parameter {name!r}{near(name, parameters)}")
        case Result() | Item():
            yield Problem(path, "only {ref: <stage>.<output>} can be used in a pipeline")
        case _:
            pass


def _output(path: str, of: Written, output: str) -> Iterator[Problem]:
    if of.kind is None:
        return
    outputs = of.kind.outputs
    if outputs.named_by_stage and of.stage is None:
        return  # What it calls its outputs could not be read.
    available = outputs.names if of.stage is None else outputs.of(of.stage)
    if output not in available and output not in outputs.names:
        yield Problem(path, f"stage {of.name!r} has no output {output!r}{near(output, available)}")
    elif output not in available:
        hint = outputs.otherwise(output)
        yield Problem(path, f"stage {of.name!r} gives no output {output!r}; {hint}")
    elif reason := outputs.unreadable(output):
        yield Problem(path, f"no stage can refer to {output!r} of {of.name!r}: {reason}")


def _of_pipeline(draft: Draft) -> Iterator[Problem]:
    yield from s3_problem("workspace", draft.workspace)
    if isinstance(draft.workspace, str) and draft.workspace.endswith("/"):
        yield Problem("workspace", "leave the slash at its end away")
    for field, value in (("workspace", draft.workspace), ("role", draft.role)):
        for node in walk(value):
            if isinstance(node, Ref):
                yield Problem(field, "an output of a stage is known too late for this")
            else:
                yield from _reference(field, node, {}, draft.parameters)
    if isinstance(draft.role, str) and not draft.role.startswith("arn:"):
        yield Problem(
            "role",
            f"expected an ARN, got {draft.role!r}; write arn:aws:iam::<account>:role/{draft.role}",
        )
    stages = [stage.name for stage in draft.stages]
    for name in draft.integrations:
        if name and name not in stages:
            yield Problem("integration", f"there is no stage {name!r}{near(name, stages)}")
    yield from _tags(draft.tags)
    yield from (problem.within("tags") for problem in tags.problems(draft.tags))
    yield from _schedule(draft)
    yield from _overlap(draft)
    if draft.notify is not None:
        yield from draft.notify.misplaced(draft.region)
    if draft.step_functions is not None:
        yield from draft.step_functions.misplaced(draft.region)


def _tags(keys: Iterable[str]) -> Iterator[Problem]:
    for key in keys:
        if key.lower().startswith("aws:"):
            yield Problem(f"tags.{key}", "tags that begin with aws: are AWS's own")
        elif key.lower().startswith("orchestration:"):
            yield Problem(
                f"tags.{key}", "is one of the tags by which one finds what a run made; rename it"
            )


def _schedule(draft: Draft) -> Iterator[Problem]:
    from orchestration.pipeline.schedules import checking

    if draft.schedule is None:
        return
    for problem in checking.problems(draft.schedule):
        yield problem.within("schedule")
    if (timed := draft.schedule.time_parameter) is not None:
        yield from _timed(timed, draft.schedule.parameters, draft)
    for name, value in draft.schedule.parameters.items():
        path = f"schedule.parameters.{name}"
        if name not in draft.parameters:
            yield Problem(path, f"there is no such parameter{near(name, draft.parameters)}")
        else:
            yield from _typed(path, value, draft, name)


def _timed(name: str, given: Container[str], draft: Draft) -> Iterator[Problem]:
    path = "schedule.time_parameter"
    if name not in draft.parameters:
        yield Problem(path, f"there is no parameter {name!r}{near(name, draft.parameters)}")
        return
    declared = draft.parameters[name]
    if declared is not None and declared.type != "string":
        yield Problem(path, f"{name} is a {declared.type}; a time is a text, so type: string")
    if name in given:
        yield Problem(path, f"schedule.parameters gives {name} a value as well; remove one of them")


def _overlap(draft: Draft) -> Iterator[Problem]:
    catching_up = draft.schedule is not None and draft.schedule.catchup
    if catching_up and draft.overlap in ("skip", "stop_older"):
        yield Problem(
            "overlap",
            f"{draft.overlap} would end all but one of the runs that schedule.catchup starts at "
            "once; write queue, or remove catchup",
        )


def _typed(path: str, value: Scalar | list[Element], draft: Draft, name: str) -> Iterator[Problem]:
    declared = draft.parameters[name]
    if declared is not None and not declared.fits(value):
        yield Problem(path, f"is {value!r}, and the parameter is a {declared.type}")
