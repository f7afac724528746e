"""The parts of a call to an AWS API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import ceil
from typing import Final, Literal, TypeAlias

from orchestration.expressions import Json, Tree
from orchestration.graph.failing import USUAL_FAILURES, FailureKind

JOB_FAILED: Final = "JobFailed"
"""The error of a job that ran and failed, as opposed to a call that was refused."""
TIMED_OUT: Final = "TimedOut"
"""The error of what was not over in time."""
NO_CAPACITY: Final = "NoCapacity"
"""The error of a call none of whose alternatives found the machines that it asks for."""

MAX_REPORT_BYTES: Final = 120 * 1024
"""Bytes of a document that a run reads: Step Functions carries 256 KiB, and JSON that stands inside
of JSON has up to twice as many."""

LATENCY: Final = "latency_ms"
"""The output with the milliseconds of a call that is timed."""

Path: TypeAlias = tuple[str | int, ...]
"""The place of a value in a response: ``("FileSystems", 0, "Lifecycle")``."""


@dataclass(frozen=True, slots=True)
class First:
    """The first object of a list whose field has a value, as a part of a place in JSON."""

    field: str
    value: str | float | bool
    """It equals values of its own type only: neither is 1 the text 1, nor true."""

    def __str__(self) -> str:
        """Return it as JMESPath writes it."""
        text = f"'{self.value}'" if isinstance(self.value, str) else f"`{json.dumps(self.value)}`"
        return f"[?{self.field}=={text}] | [0]"


Part: TypeAlias = str | int | First


class _Missing(Enum):
    """No default. A member of an enumeration stays itself when it is copied or pickled."""

    MISSING = "missing"


_MISSING: Final = _Missing.MISSING


@dataclass(frozen=True, slots=True)
class Output:
    """A value taken from a response."""

    path: Path
    kind: Literal["any", "number", "string", "list", "object"] = "any"
    """The type that the value must have; any other fails the step. ``object``: its fields
    that are text are read, and none that Step Functions has another name for."""
    columns: tuple[str, ...] = ()
    """For a list of objects: the fields to keep of each (responses are large, payloads are
    limited)."""
    texts: tuple[str, ...] = ()
    """Columns that must be text in each object."""
    numbers: tuple[str, ...] = ()
    """Columns that must be numbers in each object."""
    default: Json | object = _MISSING
    """The value if the response has none; without a default, the step then fails."""
    parse: bool = False
    """Parse the value, a text that holds JSON."""
    inside: tuple[Part, ...] = ()
    """The place of the value in what was parsed, or in what stands at the path."""
    not_finite: Literal["refused", "null"] = "refused"
    """The result of a NaN or an infinity in a report: an error, or null."""
    lacking: str = ""
    """The cause of the failure where a response lacks the value; empty: in the step's words."""

    @property
    def optional(self) -> bool:
        """True if it has a default."""
        return self.default is not _MISSING

    @property
    def place(self) -> str:
        """The whole place, for people: ``scores.0.value``."""
        return ".".join(map(str, (*self.path, *self.inside))).replace(".[?", "[?")


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """An error of an AWS API: its code, and a text that its message holds."""

    code: str
    """As botocore gives it in ``Error.Code``: ``ValidationException``, ``ResourceInUse``; empty:
    any error."""
    message: str = ""

    def matches(self, code: str, message: str) -> bool:
        """Return whether an error is of this kind; a code may end in ``Exception`` or not."""
        same = not self.code or code.removesuffix("Exception") == self.code.removesuffix(
            "Exception"
        )
        return same and self.message in message


ANY_ERROR: Final = ErrorPattern("")
"""Any error: for a call that must not keep what follows from being done."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A request to one operation of an AWS API, as botocore names them."""

    service: str
    """boto3's client name: ``sagemaker``, ``s3``, ``fsx``, ``sagemaker-runtime``."""
    name: str
    """``CreateTrainingJob``."""
    request: Mapping[str, Tree]
    decrypts: Tree = None
    """The KMS key that the data which it reads is encrypted with: its caller, or the role that it
    hands on, must be allowed to use it, and no field of the request names it."""
    reads: Tree = None
    """The S3 URI of the prefix that the role which it hands on reads, where no field of the request
    names it."""
    assumes: Tree = None
    """The ARN of the role that its caller assumes for this request alone, maybe of another
    account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person whose answer a call waits for, maybe for days.

    Step Functions asks for the answer seldom, and waits for a task token in between: whoever
    answers returns it, so that waiting costs next to nothing. Airflow shows the question in its UI.
    """

    question: Tree
    """The question, for people to read."""
    token: Operation
    """The request that keeps the token for whoever answers."""
    field: str
    """The request's field for it; it holds ``{"token": ...}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """The way to wait for the job that a call started.

    The poll's request may read the call's own outputs (those of its response, not of the poll).
    """

    poll: Operation
    status: Path
    success: frozenset[str]
    failure: frozenset[str]
    """Any status in neither set is waited on."""
    reason: Path | None = None
    """The place of a failure's reason."""
    counts: Path | None = None
    """The place of numbers that stand behind the reason."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Their fields there, each with the words behind its number: ``{"Stopped": "stopped"}``."""
    limit: Path | None = None
    """The place where a job that failed says which limit on its own time ended it."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """The words there that mean so, each with the setting that it is about; the step then fails
    with :data:`TIMED_OUT`."""
    interval_s: float = 30.0
    timeout_s: float = 86_400.0
    """After so long it is stopped (``stop``) and the step fails with :data:`TIMED_OUT`."""
    gone: ErrorPattern | None = None
    """An error of the poll that means it has ended well: what was deleted is no more."""
    absent: tuple[ErrorPattern, ...] = ()
    """Errors of the poll that say that nothing has the name: a call whose outcome is in doubt
    (throttled to the last attempt, a response lost before) started nothing."""
    stop: Operation | None = None
    """The request that stops it when the run is aborted or out of time."""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    """Taken from the last poll."""
    person: Person | None = None
    """The person who is waited for, if it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """The error by which a create call says that an earlier attempt of this run got through.

    Names are derived from the run, so what exists under the name is this run's own.
    """

    exists: ErrorPattern
    name_field: str | None = None
    """The request's field with the name, where a job that ended badly may be started anew by a
    person who clears the task: the new one gets ``-2``, ``-3``, … behind it."""
    tries: int = 1
    """Jobs that one attempt may start, each after one that failed: more than one only where the
    user asks for it, since each is paid for."""
    fails: frozenset[str] = frozenset({"Failed"})
    """The statuses of jobs that failed by themselves: nobody stopped them."""
    again: frozenset[FailureKind] = USUAL_FAILURES
    """The failures after which another is started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The same work asked for in another way: other machines, under a name of its own."""

    label: Tree
    """The machines that it requests, for people to read: ``8 x ml.p4d.24xlarge``."""
    operation: Operation
    """The same operation as the call's, with a whole request of its own."""
    poll: Operation
    stop: Operation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The requests to send instead, in order, if there is no capacity for a call's own.

    Only a lack of capacity leads to the next request: whatever else fails a job fails the step. The
    step's outputs are those of the job that completes; where none finds capacity, all are sent
    again after a pause, for as long as ``wait_s`` allows. Then the step fails with
    :data:`NO_CAPACITY` and a cause that names them all.
    """

    label: Tree
    """The machines that the call itself requests: ``4 x ml.p5.48xlarge``."""
    alternatives: tuple[Alternative, ...]
    reasons: tuple[str, ...] = ()
    """The beginnings of a failed job's reason (``until.reason``) that mean a lack of capacity. A
    script's own words come later in it, so they are never mistaken for one."""
    refusals: tuple[ErrorPattern, ...] = ()
    """Errors of the call. Each is believed only where nothing has the request's name
    (``until.absent``): a response may have been lost, and the job it tells of be what uses up the
    quota."""
    wait_s: float = 0.0
    """Seconds, from the first request on, in which all of them are sent again and again; 0: they
    are sent once. A job that exists is waited for beyond it."""
    pause_s: float = 900.0
    """Seconds between two rounds."""
    futile: tuple[ErrorPattern, ...] = ()
    """Refusals that waiting does not end: a round that met nothing else is the last."""

    @property
    def waits(self) -> bool:
        """True if the requests are sent again where none found capacity."""
        return self.wait_s > 0

    def lacks(self, reason: object) -> bool:
        """Return whether a job failed because no capacity was available."""
        return isinstance(reason, str) and reason.startswith(self.reasons)

    def refused(self, code: str, message: str) -> ErrorPattern | None:
        """Return the pattern of the lack of capacity that an error tells of, if it does."""
        return next((p for p in self.refusals if p.matches(code, message)), None)

    def is_futile(self, code: str, message: str) -> bool:
        """Return whether waiting does not end the refusal that an error tells of."""
        return any(pattern.matches(code, message) for pattern in self.futile)


@dataclass(frozen=True, slots=True)
class Recovery:
    """An error that is an answer: the step ends well with these outputs."""

    error: ErrorPattern
    outputs: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The error that failures of a call are reported as, whatever AWS calls them."""

    error: str
    remedy: Tree
    """Words behind the cause: what is left now, and what to do about it."""
    only: str = ""
    """The code of the error of AWS that it is about, without ``Exception``; empty: every error.
    Step Functions has a name of its own for such a code."""

    def is_about(self, code: str) -> bool:
        """Return whether an error is reported so."""
        return not self.only or self.only == code.removesuffix("Exception")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A value that is brought up to date with each page of a listing."""

    start: Json
    """Its value before the first page."""
    then: Tree
    """Its value after a page. It reads only the call's own outputs, which are those of the page,
    and folds, which are those before the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The way through a listing of many pages: each request has the token of the page before.

    A call with pages has its folds for outputs; nothing of a single page is kept.
    """

    token: Path
    """The place of the token in the response; the last page has none."""
    field: str
    """The request's field for the token."""
    most: int
    """Pages to ask for at the most."""
    folds: Mapping[str, Fold]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retrying a call (never a job) on errors that pass: throttling, 5xx, connection lost."""

    attempts: int = 5
    """Calls in all, the first one included."""
    interval_s: float = 2.0
    backoff_rate: float = 2.0
    errors: tuple[ErrorPattern, ...] = ()
    """Further errors of this call that pass, beside those that pass for every call."""
    busy: tuple[ErrorPattern, ...] = ()
    """Errors that say that it is too early for this call: it is sent again every
    ``busy_interval_s``, for ``busy_timeout_s`` at the most."""
    busy_interval_s: float = 30.0
    busy_timeout_s: float = 3600.0

    @property
    def busy_attempts(self) -> int:
        """Number of times that the call is sent again while it is too early for it."""
        return ceil(self.busy_timeout_s / self.busy_interval_s) if self.busy else 0
