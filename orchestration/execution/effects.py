"""The effects that a step yields when it is performed, and the answers to them.

A performance is a generator. It yields one effect at a time and is given its answer; an answer that
is an error is thrown into it (:class:`ServiceError`, :class:`Aborted`). It returns the outputs of
what it performed, or raises :class:`~orchestration.errors.RunError`. The style is that of
https://sans-io.readthedocs.io: protocol without I/O.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from orchestration.errors import OrchestrationError, RunError
from orchestration.expressions import Json
from orchestration.graph import Call

T = TypeVar("T")

Outputs: TypeAlias = Mapping[str, Json]
"""The values that a step gives, by name."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request with all its values."""

    service: str
    """boto3's client name: ``sagemaker``, ``s3``."""
    operation: str
    """``CreateTrainingJob``."""
    parameters: Mapping[str, Json]
    role: str = ""
    """The ARN of the role that is assumed for it; empty: none."""


class ServiceError(OrchestrationError, RuntimeError):
    """A request that was refused, or had no response."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        passing: bool = False,
        lasting: bool = True,
        expired: bool = False,
        status: int = 0,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        """As botocore gives it: ``ResourceInUse``, ``ConnectTimeoutError``."""
        self.message = message
        self.passing = passing
        """Whether an equal request, sent later, is likely to get through."""
        self.lasting = lasting
        """Whether AWS itself, or botocore's validation, refused it; else it never got there."""
        self.expired = expired
        """Whether the credentials that signed it are no longer valid."""
        self.status = status
        """The HTTP status of the answer; 0: there was none."""
        self.unsure = False
        """Whether an equal request that was sent before may have got through."""


class Trouble(RunError):
    """A step failed for what may be gone when its task is tried again: throttling, a lost line."""


class Aborted(OrchestrationError, RuntimeError):
    """The run is being ended from outside: what runs is stopped, clean-ups run, nothing starts."""

    def __init__(self, *, unsure: bool = False) -> None:
        super().__init__("the run is being ended from outside")
        self.unsure = unsure
        """Whether a request may have got through whose response never came."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The good end of a job."""

    outputs: Outputs


@dataclass(frozen=True, slots=True)
class Failed:
    """The failure of a job."""

    error: str
    cause: str
    lacking: bool = False
    """True if no capacity was available, so that an alternative may have some."""
    limited: bool = False
    """True if a limit of its own on its time ended it."""
    repeatable: bool = False
    """True if the user wants another job after one that failed so."""


Verdict: TypeAlias = Ended | Failed


@dataclass(frozen=True, slots=True)
class Place:
    """Which request of which try is next."""

    number: int = 1
    """The n-th try: a person who clears a task starts another, under names with ``-n``."""
    lacking: tuple[str, ...] = ()
    """The answers to the earlier requests of this try, none of which got any capacity."""
    used: bool = False
    """True if one of them started a job, so that its name is taken."""
    hopeful: bool = False
    """True if one of them may find capacity later."""
    waited: float = 0.0
    """Seconds of AWS that the rounds before this one took, with the pauses after them."""
    since: float = 0.0
    """The moment this round began; of calls that wait for capacity only."""

    def after(self, words: str, *, used: bool, hopeful: bool) -> Place:
        """Return the place of the next request, this one having got no capacity."""
        return replace(
            self,
            lacking=(*self.lacking, words),
            used=self.used or used,
            hopeful=self.hopeful or hopeful,
        )

    def newer(self) -> Place:
        """Return the beginning of the next try."""
        return Place(self.number + 1, waited=self.waited, since=self.since)


@dataclass(frozen=True, slots=True)
class Watch:
    """A job that runs: how it is polled and stopped, whoever does it.

    Plain data, so that it can travel to a trigger and be followed there.
    """

    path: str
    """The step that waits, with the elements of the loops around it: ``evaluate.each[2]/…job``."""
    subject: str
    """Its name in errors and logs: ``CreateTrainingJob digits-train-0a1b``."""
    call: Call
    poll: Request
    stop: Request | None
    outputs: Outputs
    """The outputs of the call's own response."""
    adopted: bool
    """True if an earlier attempt started it."""
    deadline: float
    """The moment it is stopped at, on the clock of :class:`Deadline`."""
    shared: bool = False
    """True if the time that ends then is what it has together with others (``call.within``)."""
    place: Place = Place()
    doubt: Failed | None = None
    """The end if the poll says that nothing has the name: the call failed, and its response, or an
    earlier one, was no answer."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; answered with the response as JSON, or :class:`ServiceError`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Pause:
    """Let some seconds of AWS pass; no longer than until a deadline, where there is one."""

    seconds: float
    jitter: bool = False
    """Shorten the pause at random, down to half, so that many who wait do not come back at once."""
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """Ask for the moment some seconds of AWS from now; 0: for this moment."""

    seconds: float = 0.0
    idle: bool = False
    """True if no work runs meanwhile, so that simulated time shortens it."""
    since: float | None = None
    """The moment that they count from, in seconds since 1970; ``None``: this one."""


@dataclass(frozen=True, slots=True)
class Now:
    """Ask for this moment in seconds since 1970, which other processes can count from."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Ask for the outputs a step left in an earlier performance; ``None`` where it left none."""

    path: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Ask for what a step already waits for: a job, or the pause between two rounds.

    Answered with a :class:`Watch`, a :class:`Rest`, or ``None``.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Started:
    """Tell that a step's request is about to be followed: the job exists."""

    path: str
    request: Request
    response: Json = None
    """The response of AWS; ``None`` if an earlier attempt had sent the request."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Wait for a job; answered with its :data:`Verdict`, or :class:`Aborted`."""

    watch: Watch
    ending: bool = False
    """True if the performance was aborted before: the job is part of a clean-up, and is followed
    to its end. The driver sets it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask for the end of a job, whose outcome no longer matters. Never an error."""

    watch: Watch


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for some seconds of AWS, which may be many: the step at a path does nothing else."""

    path: str
    seconds: float
    place: Place | None = None
    """The place where a call goes on that waits for capacity."""


@dataclass(frozen=True, slots=True)
class Waited:
    """Ask for the seconds of AWS that earlier performances of a step have waited for capacity.

    ``since`` is the moment at which the step's first job was created, in ISO 8601, where a job
    tells: at least the time from then on has passed.
    """

    path: str
    since: str | None = None


@dataclass(frozen=True, slots=True)
class Acquiring:
    """Tell that a step is about to acquire what has to be released, before its request is sent.

    Answered with whether an earlier performance has told so: what it acquired may exist, also where
    it left no outputs.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Begun:
    """Tell that a step has begun."""

    path: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Tell that a step has ended well, with its outputs.

    Answered with the outputs that count, where another performance of the run had kept some
    before; else with ``None``. :class:`ServiceError` where they could not be kept.
    """

    path: str
    outputs: Outputs = field(default_factory=dict)
    keep: bool = False
    """Keep these very outputs for later performances, which must not make them anew."""


@dataclass(frozen=True, slots=True)
class Broke:
    """Tell that a step has failed."""

    path: str
    error: str
    cause: str
    passing: bool = False
    """True if it was :class:`Trouble`, so that trying again may help."""


@dataclass(frozen=True, slots=True)
class Together:
    """Perform side by side, so many at a time; all run to their end.

    Answered with the outcome of each in order: what it returned, or the error it ended with.
    """

    performances: Sequence[Performance[Any]]
    bound: int


@dataclass(frozen=True, slots=True)
class Note:
    """Write a line into the log."""

    text: str


Effect: TypeAlias = (
    Send
    | Pause
    | Deadline
    | Now
    | Recall
    | Resume
    | Started
    | Follow
    | Stop
    | Rest
    | Waited
    | Acquiring
    | Begun
    | Finished
    | Broke
    | Together
    | Note
)

Performance: TypeAlias = Generator[Effect, Any, T]
