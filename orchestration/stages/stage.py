"""Stages, the context that they are lowered in, and the fragments of a graph that they become."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from orchestration.errors import Problem
from orchestration.expressions import (
    FieldType,
    Function,
    Tree,
    apply,
    join,
    run_attempt,
    run_id,
    walk,
)
from orchestration.graph import Call, Clock, Graph, Permission, Step
from orchestration.refs import FORMS, Expression, parse, written
from orchestration.stages.options import AirflowOptions, JobRetry
from orchestration.stages.outputs import Outputs
from orchestration.stages.values import Condition, Element, Model, Name, Source, StageName, Text


def _listed(value: object) -> object:
    if isinstance(value, Mapping) and value.keys() & set(FORMS):
        return parse(value)
    if isinstance(value, Expression):
        return value
    if isinstance(value, list | tuple):
        lists = [n for n, item in enumerate(value, start=1) if isinstance(item, list | tuple)]
        if lists:
            raise ValueError(f"element {lists[0]} is a list; expected texts, numbers or objects")
        return value
    raise ValueError(f"expected a list, or a reference to one, got {value!r}")


MOST_SECONDS: Final = 31_536_000
"""A year: an execution of Step Functions takes no longer."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that decides whether what depends on the stage happens at all."""

    condition: Expression[bool]
    on_miss: Literal["fail", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Something that lives from before the stage's first reader until after its last."""

    acquire: Call
    """The call that creates it. If it waits, the pipeline waits inside of the guard, so that what
    does not become ready is released as well."""
    cleanup: Graph
    swept: bool = False
    """True if the clean-up leaves it to a sweep, which only Step Functions has."""
    saving: Graph = field(default_factory=Graph)
    """Steps after all readers have succeeded and before the clean-up; nobody reads their results
    but the run's own outputs."""
    clock: Clock | None = None
    """The clock before it, where the stage has ``timeout_s``; the pipeline puts it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look at what a run would begin with, before anything else in it.

    Where no look of a pipeline sees a change since the last run that succeeded, the run ends, well.
    """

    steps: tuple[Step, ...]
    """They read nothing of other stages."""
    fingerprint: Expression[object]
    """The fingerprint of what is there now."""
    earlier: Expression[object]
    """The record of the last run that succeeded, as text."""
    record: Expression[str]
    """The S3 URI of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A stage, lowered."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, Tree]
    gate: Gate | None = None
    guard: Guard | None = None
    look: Look | None = None
    permissions: tuple[Permission, ...] = ()
    """Needs of whoever runs the steps, beyond calling their operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The facts of a pipeline that its stages need."""

    pipeline: str
    workspace: Tree
    """S3 URI without a slash at its end; a run's files lie under ``<workspace>/<run>/<stage>``."""
    role: Tree
    region: str | None = None
    """The AWS region of the pipeline, if it names one."""
    tags: Mapping[str, Tree] = field(default_factory=dict)
    """Those of the pipeline and, while a stage is lowered, those of the stage."""

    element: Expression[object] | None = None
    """The element that a stage with ``for_each`` is lowered for, as text."""

    def resource_name(self, stage: str) -> Expression[str]:
        """The name of what a stage creates in a run: pipeline, stage, the run's identity."""
        return self.named(self.name_prefix(stage))

    def named(self, prefix: str) -> Expression[str]:
        """Return a name of the run: a beginning that all runs share, and the run's identity."""
        return join(prefix, self._token(run_id()))

    def _token(self, run: Expression[str]) -> Expression[object]:
        """Return what tells a run from others, or an element of a run: text of one length."""
        if self.element is None:
            return run
        return apply(Function.HASH, join(run, "/", self.element))

    def attempt_name(self, stage: str) -> Expression[str]:
        """The name of what every attempt at a run creates anew."""
        return join(self.name_prefix(stage), self._token(run_attempt()))

    def name_prefix(self, stage: str) -> str:
        """The part of a stage's resource names that is the same in every run."""
        return f"{self.pipeline}-{stage.replace('_', '-')}-"

    @property
    def workspace_uri(self) -> str | Expression[object]:
        """The workspace as a part of a text."""
        return _part(self.workspace)

    def location(self, stage: str, *below: str) -> Expression[str]:
        """Return the S3 URI of a stage's files in a run."""
        if self.element is not None:
            inside = "".join(f"/{part}" for part in below)
            place = (self._token(run_id()), inside)
            return join(self.workspace_uri, "/", run_id(), f"/{stage}/", *place)
        return join(self.workspace_uri, "/", run_id(), "/", "/".join([stage, *below]))

    def source(self, source: Source) -> Expression[str] | str:
        """Return the S3 prefix of a stage's code."""
        if source.uri is not None:
            return source.uri
        return join(self.workspace_uri, "/source/", source.sha256 or "")

    def archive(self, source: Source) -> Expression[str] | str:
        """Return the S3 URI of a stage's code as the archive that the training toolkit unpacks."""
        if source.uri is not None and source.archive_only:
            return source.uri
        return join(self.source(source), "/sourcedir.tar.gz")

    def tagged(self, tags: Mapping[str, Tree]) -> Context:
        """Return the context of a stage with tags of its own."""
        return replace(self, tags={**self.tags, **tags}) if tags else self

    def tag_list(self, stage: str, *, run: str | None = None) -> list[Tree]:
        """Tags of everything a stage creates, to find a run's resources by.

        ``run`` stands for the run in requests that must be equal in all runs.
        """
        own = {"orchestration:pipeline": self.pipeline, "orchestration:stage": stage}
        plain: list[Tree] = [{"Key": k, "Value": v} for k, v in {**self.tags, **own}.items()]
        return [*plain, {"Key": "orchestration:run", "Value": run_id() if run is None else run}]


SAMPLE = Context(pipeline="pipeline", workspace="s3://bucket", role="role", region="us-east-1")
"""A context to try a stage's requests in before there is a pipeline."""


def _part(tree: Tree) -> str | Expression[object]:
    if isinstance(tree, str | Expression):
        return tree
    raise TypeError(f"{tree!r} is neither text nor a reference")


@dataclass(frozen=True, slots=True)
class NoOutputs:
    """A stage without outputs."""


class ForEachItem(Model):
    """A list, for each element of which a stage runs; ``{each: item}`` is the element in it."""

    items: Annotated[tuple[Element, ...] | Expression[Any], BeforeValidator(_listed)]
    """Texts, numbers, objects, or a reference to a list: ``[de, fr]``, ``{parameter: markets}``,
    ``{ref: train.model_artifacts}`` of a stage that has ``for_each`` itself."""
    fields: dict[Name, FieldType] = {}
    """For a list of objects, the fields that each must have, with their types:
    ``{market: string, days: number}``. ``{each: days}`` is a field of the element then."""
    key: Name | None = None
    """The field, a text, that names an element and that no two elements have in common."""
    together: Name | None = None
    """A name that stages share which run together, all of them for one element: each reads what the
    others came to for its own element, and stages outside read lists."""
    max_concurrency: int = Field(default=4, ge=1, le=40)
    """Elements at a time."""
    at_most: int = Field(default=100, ge=1, le=1000)
    """The most elements; with more, the run fails before any of them."""

    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            raise ValueError(f"expected a mapping, got {value!r:.60}; write {{items: <the list>}}")
        try:
            items = written(parse(value))
        except ValueError:
            return value
        text = json.dumps(items).replace('"', "")
        raise ValueError(f"expected a mapping, got a reference; write {{items: {text}}}")

    @model_validator(mode="after")
    def _key_is_a_field(self) -> Self:
        if self.fields and self.key is None:
            raise ValueError("has fields and no key; name the field that tells elements apart")
        if self.key is not None and self.fields.get(self.key) != "string":
            raise ValueError(f"expected the key {self.key} among the fields, as a string")
        return self


class Stage(Model):
    """One stage of a pipeline: it knows AWS requests and no backend."""

    name: StageName
    """Snake case; it stands in the names of what the stage creates."""
    after: tuple[Name, ...] = ()
    """Stages to wait for beside those that are referred to."""
    tags: dict[str, Text] = Field(default={}, max_length=47)
    """Tags of what the stage creates, beside those of the pipeline."""
    retry: JobRetry | None = None
    """Further jobs where one fails: by default none."""
    timeout_s: Annotated[int, Field(ge=1, le=MOST_SECONDS, strict=True)] | None = None
    """Seconds that the whole stage may take: its jobs, further tries, all elements of a loop,
    waiting for capacity or for a person. Then its jobs are stopped, it starts no other, and the run
    fails with ``TimedOut``. Limits of its parts count beside it."""
    airflow: AirflowOptions | None = None
    """Settings of the stage's tasks on Airflow; other backends ignore them."""
    when: Condition | None = None
    """The condition under which the stage runs: ``{equal: [{parameter: mode}, full]}``. Where it
    does not hold, the stage is skipped, with those that refer to its outputs; ``{first_of: […]}``
    takes the first of several outputs that is there."""

    for_each: ForEachItem | None = None
    """Run the stage once for each element of a list; its outputs are lists then."""

    outputs: ClassVar[Outputs[Any]] = Outputs(NoOutputs)
    """The outputs that other stages can refer to: ``train.outputs.checkpoints``."""
    lacking: ClassVar[Mapping[str, str]] = {}
    """Fields of other kinds that this kind does not have, with the reason and a way out."""

    def lower(self, context: Context) -> Fragment:  # noqa: ARG002 - the shape all stages share
        """The stage as steps."""
        raise TypeError(f"{type(self).__name__} does not say how it is lowered")

    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:  # noqa: ARG002 - the shape all stages share
        """Yield the errors beyond the types of the fields, with paths inside the stage."""
        yield from ()

    def check_readers(self, readers: Sequence[Stage]) -> Iterator[Problem]:  # noqa: ARG002 - the shape all stages share
        """Yield the errors that show only beside the stages that refer to this one."""
        yield from ()

    def check_beside(self, stages: Mapping[str, Stage]) -> Iterator[Problem]:  # noqa: ARG002 - the shape all stages share
        """Yield the errors that show only beside the other stages, which come by name."""
        yield from ()

    def warnings(self) -> Iterator[Problem]:
        """Yield probable mistakes and what is not known to work, with paths inside the stage."""
        yield from ()

    def facts(self) -> Iterator[str]:
        """Yield facts that follow from the stage's numbers: the sizes of its cluster and batch."""
        yield from ()

    def sources(self) -> Iterator[tuple[str, Source]]:
        """The stage's folders of code, by field."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Source):
                yield name, value
            for number, item in enumerate(value if isinstance(value, tuple) else ()):
                for inside in type(item).model_fields if isinstance(item, Model) else ():
                    if isinstance(source := getattr(item, inside), Source):
                        yield f"{name}[{number}].{inside}", source

    def references(self) -> Iterator[tuple[str, Expression[object]]]:
        """Every expression a user wrote, with its path inside the stage."""
        yield from _expressions(self, "")


def _expressions(value: Any, path: str) -> Iterator[tuple[str, Expression[object]]]:
    dot = f"{path}." if path else ""
    if isinstance(value, Expression):
        for node in walk(value):
            yield path, node
    elif isinstance(value, Model):
        for name in type(value).model_fields:
            yield from _expressions(getattr(value, name), f"{dot}{name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _expressions(item, f"{dot}{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _expressions(item, f"{path}[{index}]")
