"""The narrow waist: a handful of step kinds that stages lower to and backends render.

A :class:`Graph` is a set of steps; its edges come from the results that steps read, and from
``after``. Steps that do not depend on each other may run at the same time. Read the kinds
with ``match`` and ``assert_never``, so that a new kind makes the type checker name every renderer
to finish.

What a step can see: the steps of its own graph and of the graphs around it, the steps inside a
``Guarded`` or ``Parallel`` of those (both have run whole before anything after them), and ``Item``
inside a ``ForEach``. What runs inside a ``Choose`` or a ``ForEach`` stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, assert_never, cast

from orchestration.errors import GraphError, Problem
from orchestration.expressions import Json, Result, Tree, walk

if TYPE_CHECKING:
    from orchestration.refs import Expression

JOB_FAILED: Final = "JobFailed"
"""The error of a job that ran and failed, as opposed to a call that was refused."""
TIMED_OUT: Final = "TimedOut"
"""The error of what was not over in time."""

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands in a response: ``("FileSystems", 0, "Lifecycle")``."""


class _Missing(Enum):
    """No default. A member of an enumeration stays itself when it is copied or pickled."""

    MISSING = "missing"


_MISSING: Final = _Missing.MISSING


@dataclass(frozen=True, slots=True)
class Output:
    """A value taken from a response."""

    path: Path
    kind: Literal["any", "number", "string", "list"] = "any"
    """What it must be; anything else fails the step."""
    columns: tuple[str, ...] = ()
    """For a list of objects: the fields to keep of each (responses are large, payloads are
    limited)."""
    default: Json | object = _MISSING
    """What it is where the response lacks it; without one, its absence fails the step."""
    parse: bool = False
    """Whether the value is a text that holds JSON, to be parsed."""

    @property
    def optional(self) -> bool:
        """Whether it has a default."""
        return self.default is not _MISSING


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """An error of an AWS API: its code, and a text that its message holds."""

    code: str
    """As botocore gives it in ``Error.Code``: ``ValidationException``, ``ResourceInUse``."""
    message: str = ""

    def matches(self, code: str, message: str) -> bool:
        """Whether an error is of this kind. Codes are given with and without ``Exception``."""
        return code.removesuffix("Exception") == self.code.removesuffix("Exception") and (
            self.message in message
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """A request to one operation of an AWS API, as botocore names them."""

    service: str
    """boto3's client name: ``sagemaker``, ``s3``, ``fsx``, ``sagemaker-runtime``."""
    name: str
    """``CreateTrainingJob``."""
    request: Mapping[str, Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """How to wait for what a call started.

    The poll's request may read the call's own outputs (those of its response, not of the poll).
    """

    poll: Operation
    status: Path
    success: frozenset[str]
    failure: frozenset[str]
    """Any status in neither set is waited on."""
    reason: Path | None = None
    """Where a failure's reason stands."""
    interval_s: float = 30.0
    timeout_s: float = 86_400.0
    """After so long it is stopped (``stop``) and the step fails with :data:`TIMED_OUT`."""
    gone: ErrorPattern | None = None
    """An error of the poll that means it has ended well: what was deleted is no more."""
    stop: Operation | None = None
    """How to stop it when the run is aborted or out of time."""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    """Taken from the last poll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """How a create call says that an earlier attempt of this very run got through.

    Names are derived from the run, so what exists under the name is this run's own.
    """

    exists: ErrorPattern
    name_field: str | None = None
    """The request's field with the name, where a job that ended badly may be started anew by a
    person who clears the task: the new one gets ``-2``, ``-3``, … behind it."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """An error that is an answer: the step ends well with these outputs."""

    error: ErrorPattern
    outputs: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retrying a call (never a job) on errors that pass: throttling, 5xx, connection lost."""

    attempts: int = 5
    """Calls in all, the first one included."""
    interval_s: float = 2.0
    backoff_rate: float = 2.0
    errors: tuple[ErrorPattern, ...] = ()
    """Further errors of this call that pass, beside those that pass for every call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One AWS API operation, waited for where it starts something long."""

    name: str
    operation: Operation
    outputs: Mapping[str, Output] = field(default_factory=dict)
    """Taken from the response of the call itself."""
    until: Until | None = None
    adopt: Adopt | None = None
    recoveries: tuple[Recovery, ...] = ()
    retry: Retry = Retry()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A JSON object in S3, as outputs."""

    name: str
    uri: Tree
    """``s3://bucket/key``."""
    outputs: Mapping[str, Output]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """One of two graphs, by a condition. Nothing after it reads what either did."""

    name: str
    condition: Expression[bool]
    then: Graph
    otherwise: Graph
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForEach:
    """A body for every element of a list; ``items`` holds ``collect`` of each, in order."""

    name: str
    items: Tree
    body: Graph
    collect: Mapping[str, Tree]
    """Read inside the body: ``Item`` and the results of its steps."""
    max_concurrency: int
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """Independent graphs side by side; done when all are."""

    name: str
    branches: tuple[Graph, ...]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Something that costs while it exists: acquired, used by a body, and always released.

    The clean-up runs after success, failure and abort of the body, and never hides a failure; if it
    fails itself, the run fails. It may read the outputs of ``acquire``.
    """

    name: str
    acquire: Call
    body: Graph
    cleanup: Graph
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A pause."""

    name: str
    seconds: Tree
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The end of the run, failed, with a name for programs and a cause for people."""

    name: str
    error: str
    cause: Tree
    after: tuple[str, ...] = ()


Step: TypeAlias = Call | Read | Choose | ForEach | Parallel | Guarded | Wait | Fail


@dataclass(frozen=True, slots=True)
class Graph:
    """Steps, in no particular order."""

    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSpec:
    """A parameter of a workflow."""

    name: str
    type: Literal["string", "number", "boolean"] = "string"
    default: str | float | bool | None = None
    """``None``: required."""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """When a workflow runs by itself."""

    cron: str
    """Five fields: minute hour day-of-month month day-of-week."""
    timezone: str
    """IANA name: ``Europe/Berlin``."""
    parameters: Mapping[str, str | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A whole pipeline, lowered: what a backend is given."""

    name: str
    graph: Graph
    parameters: tuple[ParameterSpec, ...] = ()
    outputs: Mapping[str, Tree] = field(default_factory=dict)
    """What a run has to show at the end. Only steps that every successful run reaches."""
    description: str = ""
    schedule: ScheduleSpec | None = None


def bodies(step: Step) -> tuple[Graph, ...]:
    """The graphs inside a step."""
    match step:
        case Choose():
            return (step.then, step.otherwise)
        case ForEach():
            return (step.body,)
        case Parallel():
            return step.branches
        case Guarded():
            return (Graph((step.acquire,)), step.body, step.cleanup)
        case Call() | Read() | Wait() | Fail():
            return ()


def trees(step: Step) -> Iterator[Tree]:
    """Every tree of a step's own (not those inside its bodies)."""
    match step:
        case Call():
            yield step.operation.request
            if step.until is not None:
                yield step.until.poll.request
                if step.until.stop is not None:
                    yield step.until.stop.request
        case Read():
            yield step.uri
        case Choose():
            yield step.condition
        case ForEach():
            yield step.items
            yield step.collect
        case Wait():
            yield step.seconds
        case Fail():
            yield step.cause
        case Parallel() | Guarded():
            pass


def all_steps(graph: Graph) -> Iterator[Step]:
    """Every step of a graph, those inside others too, outermost first."""
    for step in graph.steps:
        yield step
        for body in bodies(step):
            yield from all_steps(body)


def rewrite(  # noqa: C901 - one arm for each kind of step
    step: Step, tree: Callable[[Any], Any]
) -> Step:
    """The step with every tree of it, and of the steps inside it, replaced."""

    def operation(old: Operation) -> Operation:
        return replace(old, request=tree(old.request))

    def graph(old: Graph) -> Graph:
        return Graph(tuple(rewrite(inner, tree) for inner in old.steps))

    match step:
        case Call(until=until):
            if until is not None:
                stop = operation(until.stop) if until.stop is not None else None
                until = replace(until, poll=operation(until.poll), stop=stop)
            return replace(step, operation=operation(step.operation), until=until)
        case Read():
            return replace(step, uri=tree(step.uri))
        case Choose():
            return replace(
                step,
                condition=tree(step.condition),
                then=graph(step.then),
                otherwise=graph(step.otherwise),
            )
        case ForEach():
            return replace(
                step, items=tree(step.items), body=graph(step.body), collect=tree(step.collect)
            )
        case Parallel():
            return replace(step, branches=tuple(graph(branch) for branch in step.branches))
        case Guarded():
            return replace(
                step,
                acquire=cast(Call, rewrite(step.acquire, tree)),
                body=graph(step.body),
                cleanup=graph(step.cleanup),
            )
        case Wait():
            return replace(step, seconds=tree(step.seconds))
        case Fail():
            return replace(step, cause=tree(step.cause))
        case _:
            assert_never(step)


def reads(step: Step) -> frozenset[str]:
    """The names of all steps whose results a step reads, itself or inside its bodies."""
    own = {node.step for tree in trees(step) for node in walk(tree) if isinstance(node, Result)}
    inner = {name for body in bodies(step) for s in body.steps for name in reads(s)}
    after = {name for body in bodies(step) for s in all_steps(body) for name in s.after}
    return frozenset(own | inner | after | set(step.after))


def visible(step: Step) -> frozenset[str]:
    """The names under which a step's results are read from outside of it."""
    names = {step.name}
    if isinstance(step, Parallel | Guarded):
        names |= {n for body in bodies(step) for inner in body.steps for n in visible(inner)}
    return frozenset(names)


def upstream(graph: Graph) -> dict[str, frozenset[str]]:
    """For every step of a graph (not inside others), the steps of that graph it waits for."""
    owner = {name: step.name for step in graph.steps for name in visible(step)}
    return {
        step.name: frozenset(
            owner[name] for name in reads(step) if name in owner and owner[name] != step.name
        )
        for step in graph.steps
    }


def ordered(graph: Graph) -> tuple[Step, ...]:
    """The steps so that each comes after what it waits for, ties by their order in the graph.

    Raises :class:`GraphError` naming the members of a cycle.
    """
    before = upstream(graph)
    done: dict[str, Step] = {}
    left = list(graph.steps)
    while left:
        ready = [step for step in left if before[step.name] <= done.keys()]
        if not ready:
            raise GraphError([Problem("", f"these wait for each other: {_cycle(before, done)}")])
        done |= {step.name: step for step in ready}
        left = [step for step in left if step.name not in done]
    return tuple(done.values())


def _cycle(before: Mapping[str, frozenset[str]], done: Mapping[str, Step]) -> str:
    path = [next(name for name in before if name not in done)]
    while True:
        # Every step left waits for another one left, so following them must come round.
        following = min(name for name in before[path[-1]] if name not in done)
        if following in path:
            return " -> ".join([*path[path.index(following) :], following])
        path.append(following)
