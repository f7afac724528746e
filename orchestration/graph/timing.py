"""The time that several calls may take together."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.expressions import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """The time in which a call must be over, counted from a moment before it.

    Nothing is started when it has passed, and what runs is stopped at the next poll; the step then
    fails with :data:`~orchestration.graph.calls.TIMED_OUT`. The call's own limit stays: the earlier
    of the two counts. What no call waits for is not cut short.
    """

    since: Tree
    """The moment, in seconds since 1970: the output ``at`` of a :class:`Clock`."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The moment at which a run comes by: the output ``at``, in seconds since 1970.

    It is read once in an attempt at the run, however often what follows is tried again.
    """

    name: str
    after: tuple[str, ...] = ()
