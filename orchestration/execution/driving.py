"""Performances, driven: effects answered one after the other until the end.

Whoever acts implements :class:`Edge` (or, in an event loop, :class:`AsyncEdge`) and calls
:func:`driven`. An abort (:class:`~orchestration.execution.effects.Aborted`) is thrown into a
performance once; what it does after that (stopping jobs, cleaning up) is answered as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from orchestration.errors import OrchestrationError, RunError
from orchestration.execution.effects import (
    Aborted,
    Effect,
    Follow,
    Pause,
    Performance,
    Rest,
    Send,
    ServiceError,
    Together,
    Watch,
)

T = TypeVar("T")

MOST_THREADS = 40
"""Side by side in one process; more wait for their turn."""


class Suspended(OrchestrationError, RuntimeError):
    """A performance goes on elsewhere: jobs are followed, or pauses waited for, by others."""

    def __init__(self, watches: Sequence[Watch], rests: Sequence[tuple[str, float]] = ()) -> None:
        super().__init__(f"waits for {', '.join(w.subject for w in watches) or 'the time'}")
        self.watches = tuple(watches)
        self.rests = tuple(rests)
        """Paths of steps that only let time pass, and the moments they wait for."""


class Edge(Protocol):
    """The side that acts: it answers effects."""

    def answer(self, effect: Effect) -> Any:
        """Answer any effect but :class:`Together`.

        Raises :class:`ServiceError`, :class:`~orchestration.errors.RunError` where a step is known
        to have failed, or :class:`Suspended` where the performance is to go on
        elsewhere.
        """

    def aborted(self) -> bool:
        """Return whether the run is being ended from outside."""


class AsyncEdge(Protocol):
    """The side that acts in an event loop."""

    async def answer(self, effect: Effect) -> Any:
        """Answer any effect but :class:`Together`."""


# What is only told or looked up is answered after an abort too, so that a job whose creation was
# under way is known by the time it must be stopped. What runs side by side is aborted each on its
# own, so that a clean-up is reached for what an earlier process acquired there.
_INTERRUPTIBLE = (Send, Pause, Follow, Rest)

Outcome: TypeAlias = Any
"""The return value of a performance, or the exception that ended it."""


@dataclass(slots=True)
class _Driver:
    edge: Edge
    told: bool = False
    """True once the abort has been thrown into this performance."""

    def drive(self, performance: Performance[T]) -> T:
        give: Callable[[], Effect] = lambda: next(performance)  # noqa: E731 - the first of many
        while True:
            try:
                effect = give()
            except StopIteration as end:
                return cast(T, end.value)
            give = self._next(performance, effect)

    def _next(self, performance: Performance[T], effect: Effect) -> Callable[[], Effect]:
        try:
            answer = self._answer(effect)
        except (ServiceError, Aborted, RunError) as error:
            thrown = error
            return lambda: performance.throw(thrown)
        except BaseException:
            performance.close()
            raise
        return lambda: performance.send(answer)

    def _answer(self, effect: Effect) -> Any:
        if not self.told and isinstance(effect, _INTERRUPTIBLE) and self.edge.aborted():
            self.told = True
            raise Aborted
        if isinstance(effect, Together):
            return self._together(effect)
        if isinstance(effect, Follow):
            effect = replace(effect, ending=self.told)
        try:
            return self.edge.answer(effect)
        except Aborted:
            self.told = True
            raise

    def _together(self, effect: Together) -> list[Outcome]:
        if not effect.performances:
            return []
        most = min(effect.bound, len(effect.performances), MOST_THREADS)
        with ThreadPoolExecutor(most, thread_name_prefix="orchestration") as pool:
            futures = [pool.submit(self._outcome, inner) for inner in effect.performances]
            outcomes = [future.result() for future in futures]
        suspended = [o for o in outcomes if isinstance(o, Suspended)]
        if suspended:
            raise Suspended(
                [watch for s in suspended for watch in s.watches],
                [rest for s in suspended for rest in s.rests],
            )
        self.told = self.told or any(isinstance(outcome, Aborted) for outcome in outcomes)
        return outcomes

    def _outcome(self, performance: Performance[Any]) -> Outcome:
        try:
            return _Driver(self.edge, self.told).drive(performance)
        except OrchestrationError as error:
            return error


def driven(performance: Performance[T], edge: Edge, *, aborting: bool = False) -> T:
    """Drive a performance to its end in this thread, side by side where it says so.

    ``aborting``: the run is being ended already, and this is part of how it ends.
    """
    return _Driver(edge, aborting).drive(performance)


async def driven_async(performance: Performance[T], edge: AsyncEdge) -> T:
    """Drive a performance to its end in an event loop; nothing in it runs side by side."""
    try:
        effect = next(performance)
        while True:
            try:
                answer = await edge.answer(effect)
            except ServiceError as error:
                effect = performance.throw(error)
            else:
                effect = performance.send(answer)
    except StopIteration as end:
        return cast(T, end.value)
