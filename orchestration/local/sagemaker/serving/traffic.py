"""The traffic of an endpoint: fleets of model processes, and their shares of the requests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.serving.model_host import ModelHost

_Item = TypeVar("_Item")


class Shares(Generic[_Item]):
    """Deals turns by weight and evenly: at 90 to 10, every tenth turn is the second item's."""

    def __init__(self, weights: Sequence[tuple[_Item, float]]) -> None:
        self.items = [item for item, _ in weights]
        self._weights = [weight for _, weight in weights]
        self._credits = [0.0 for _ in weights]

    def turn(self) -> _Item:
        """Return the item whose turn it is."""
        self._credits = [c + w for c, w in zip(self._credits, self._weights, strict=True)]
        chosen = max(range(len(self.items)), key=self._credits.__getitem__)
        self._credits[chosen] -= sum(self._weights)
        return self.items[chosen]


@dataclass(eq=False)
class Member:
    """A variant of a configuration, and the process that stands for all its instances."""

    variant: JsonObject
    host: ModelHost
    count: int
    weight: float

    @property
    def name(self) -> str:
        """The variant's name."""
        return str(self.variant["VariantName"])


@dataclass(eq=False)
class Fleet:
    """The variants of one configuration, as they serve."""

    config_name: str
    members: tuple[Member, ...]
    shadows: tuple[Member, ...] = ()
    """Variants that get copies of requests, and answer nobody."""
    shares: Shares[Member] = field(init=False)
    copies: Shares[Member | None] = field(init=False)

    def __post_init__(self) -> None:
        self.weigh()

    @property
    def all_members(self) -> tuple[Member, ...]:
        """The variants that answer, and their shadows."""
        return (*self.members, *self.shadows)

    def weigh(self) -> None:
        """Share the requests, and their copies, by the variants' weights."""
        self.shares = Shares([(member, member.weight) for member in self.members])
        copied = [(shadow, shadow.weight) for shadow in self.shadows]
        rest = sum(each.weight for each in self.members) - sum(weight for _, weight in copied)
        self.copies = Shares([*copied, (None, max(0.0, rest))])

    def stop(self) -> None:
        """Stop the processes."""
        for member in self.all_members:
            member.host.stop()

    def logs(self) -> str:
        """Return the logs of the processes so far."""
        return "".join(member.host.logs() for member in self.all_members)


class Traffic:
    """The way of an endpoint's requests to its fleets."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._shares: Shares[Fleet] = Shares([])
        self._pending: Counter[Fleet] = Counter()

    def route(self, *shares: tuple[Fleet, float]) -> None:
        """Send each fleet its share of the requests from now on."""
        with self._changed:
            self._shares = Shares([(fleet, share) for fleet, share in shares if share > 0])

    @contextmanager
    def member(self, variant: str | None = None) -> Iterator[tuple[Fleet, Member] | None]:
        """Yield whose turn it is to answer a request; None where nothing serves."""
        served = self._next(variant)
        if served is None:
            yield None
            return
        fleet = served[0]
        try:
            yield served
        finally:
            self.release(fleet)

    def shadow(self, fleet: Fleet) -> Member | None:
        """Return the shadow whose turn it is to get a copy; `release` the fleet when it has it."""
        with self._changed:
            shadow = fleet.copies.turn()
            if shadow is not None:
                self._pending[fleet] += 1
            return shadow

    def release(self, fleet: Fleet) -> None:
        """Note that a fleet has answered a request."""
        with self._changed:
            self._pending[fleet] -= 1
            self._changed.notify_all()

    def _next(self, variant: str | None) -> tuple[Fleet, Member] | None:
        with self._changed:
            if not self._shares.items:
                return None
            fleet = self._shares.turn()
            self._pending[fleet] += 1
            named = [each for each in fleet.members if each.name == variant]
            return fleet, named[0] if named else fleet.shares.turn()

    def drain(self, fleet: Fleet) -> None:
        """Wait until a fleet that gets no more requests has answered its last one."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending[fleet])
            del self._pending[fleet]
