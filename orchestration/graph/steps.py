"""The step kinds, and the graphs and workflows that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from orchestration.errors import Problem
from orchestration.expressions import Json, Tree
from orchestration.graph.calls import (
    Adopt,
    Failure,
    Fallback,
    Operation,
    Output,
    Pages,
    Recovery,
    Retry,
    Until,
)
from orchestration.graph.starts import (
    Overlap,
    ParameterSpec,
    ScheduleSpec,
    TriggerSpec,
    overlap_of,
)
from orchestration.graph.timing import Clock, Within

if TYPE_CHECKING:
    from orchestration.refs import Expression

Integration: TypeAlias = Literal["sync", "sdk"]
"""The way Step Functions starts a job: the integration that waits for its end, or ``aws-sdk``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One AWS API operation, waited for where it starts something long."""

    name: str
    operation: Operation
    outputs: Mapping[str, Output] = field(default_factory=dict)
    """Taken from the response of the call itself."""
    pages: Pages | None = None
    until: Until | None = None
    adopt: Adopt | None = None
    recoveries: tuple[Recovery, ...] = ()
    retry: Retry = field(default_factory=Retry)
    fallback: Fallback | None = None
    failure: Failure | None = None
    may_fail: bool = False
    """True if the step ends well although its job failed or ran out of time: the outputs of its end
    then have their defaults, and it has no others."""
    timed: bool = False
    """True if it gives the output :data:`~orchestration.graph.calls.LATENCY`: the milliseconds from
    the first request to the answer, as whoever drives the run sees them, with the pauses before
    further tries; of calls that wait for nothing only."""
    within: Within | None = None
    """The time that it has together with others; of calls that wait only."""
    after: tuple[str, ...] = ()

    @property
    def starts_job(self) -> bool:
        """True if it starts something that takes its time: its polls ask for something else."""
        return self.until is not None and self.until.poll.name != self.operation.name

    @property
    def only_asks(self) -> bool:
        """True if it starts nothing: it asks what its polls ask, and waits through an outage."""
        until = self.until
        if until is None or until.poll != self.operation or until.gone is not None:
            return False
        plain = not (self.outputs or self.recoveries or self.adopt or self.fallback)
        return plain and self.retry == Retry()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A report: a JSON object in S3 that a job has written, as outputs.

    It has at most :data:`~orchestration.graph.calls.MAX_REPORT_BYTES`. ``NaN`` and ``Infinity`` may
    stand in it as Python's ``json`` writes them.
    """

    name: str
    uri: Tree
    """``s3://bucket/key``."""
    outputs: Mapping[str, Output]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """One of two graphs, by a condition. What follows reads what it collects, and nothing else."""

    name: str
    condition: Expression[bool]
    then: Graph
    otherwise: Graph
    collect: Mapping[str, Tree] = field(default_factory=dict)
    """Its outputs where the condition holds; read inside ``then``."""
    absent: Mapping[str, Tree] = field(default_factory=dict)
    """The same outputs where it does not hold; read inside ``otherwise``."""
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """A condition that must hold: where it does not, the run fails as by :class:`Fail`."""

    name: str
    condition: Expression[bool]
    error: str
    cause: Tree
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
    at_most: int | None = None
    """The most elements, where a step before it requires no more."""
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
    """One request, without ``until``; the wait for what it creates begins the body."""
    body: Graph
    cleanup: Graph
    swept: bool = False
    """True if the clean-up may leave it to a sweep; only Step Functions has one."""
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A value that outlives a body that fails; null where one of its steps has not ended well."""

    value: Tree
    """It reads steps anywhere in the body, but for those in loops."""
    steps: tuple[str, ...]
    """All steps that it reads, or that make it true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """A body, and what is done after its end, whether it succeeded or failed.

    The conclusion reads how the body ended as outputs of this step: ``state`` (``succeeded`` or
    ``failed``), ``error`` and ``cause`` (empty texts where it succeeded), ``attempt``, the number
    of the attempt at the run, and the values ``kept`` of the body, by their names. Where the body
    succeeded, it may read results of it. A failure of the body is the step's own after the
    conclusion, whatever becomes of that; a conclusion that fails after a body that succeeded fails
    the step. Nothing is concluded after an abort.
    """

    name: str
    body: Graph
    conclusion: Graph
    kept: Mapping[str, Kept] = field(default_factory=dict)
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


Step: TypeAlias = (
    Call | Read | Choose | Require | ForEach | Parallel | Guarded | Concluded | Clock | Wait | Fail
)
RUN_SUCCEEDED: Final = "succeeded"
RUN_FAILED: Final = "failed"
"""The state of a run at its end, as what follows the end reads it."""
CONCLUDED: Final = ("state", "error", "cause", "attempt")
"""The outputs of :class:`Concluded` that its conclusion reads."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Steps, in no particular order."""

    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Actions of IAM that steps need beyond those of the operations that they call.

    A service may act in its caller's name: who starts a query in Athena needs access to what it
    reads and writes.
    """

    actions: tuple[str, ...]
    """``s3:PutObject``."""
    resources: tuple[Tree, ...]
    """ARNs, with ``*`` for any text: ``join("arn:aws:s3:::", bucket, "/*")``; ``{partition}``,
    ``{region}`` and ``{account}`` in plain text stand for those of the deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySpec:
    """The topics of SNS, by their ARNs, that hear how runs end."""

    on_failure: tuple[str, ...] = ()
    on_success: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A whole pipeline, lowered: what a backend is given."""

    name: str
    graph: Graph
    parameters: tuple[ParameterSpec, ...] = ()
    outputs: Mapping[str, Tree] = field(default_factory=dict)
    """The outputs that a run shows at its end, of steps that every successful run reaches."""
    description: str = ""
    schedule: ScheduleSpec | None = None
    trigger: TriggerSpec | None = None
    overlap: Overlap | None = None
    """The policy for runs that overlap, if the pipeline names one."""
    notify: NotifySpec | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    """The pipeline's own, to find it by."""
    integrations: Mapping[str, Integration] = field(default_factory=dict)
    """The integration that Step Functions starts the jobs of a stage with, where the pipeline says
    so; an empty name stands for all stages."""
    airflow: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """The settings of Airflow's tasks by stage; an empty name stands for all tasks."""
    alias: str | None = None
    """The alias of the state machine that starts its runs; ``None``: the state machine does."""
    region: str | None = None
    """The AWS region that it runs in; ``None``: that of whatever runs it."""
    written: Mapping[str, Tree] = field(default_factory=dict)
    """S3 URIs of the data and models that stages write, as ``stage.output``."""
    permissions: Mapping[str, tuple[Permission, ...]] = field(default_factory=dict)
    """Needs of the role that runs it beyond calling the steps' operations, by stage."""
    origin: Sequence[Mapping[str, Any]] = field(default=(), compare=False, repr=False)
    """The data of the file that it was read from, and that of its lock file, where it was."""
    unwritten: Sequence[Problem] = field(default=(), compare=False, repr=False)
    """The reasons for which a pipeline of Python has no such data, where it was to have some."""

    @property
    def overlapping(self) -> Overlap:
        """The policy for runs that overlap."""
        starts_itself = self.schedule is not None or self.trigger is not None
        return overlap_of(self.overlap, starts_itself=starts_itself)
