"""The changes that bring the aliases of a state machine to what a pipeline says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.resources import Change


def made(wanted: Alias | None, current: Iterable[Alias], *, published: bool) -> Iterator[Change]:
    """Yield the change of the alias that is wanted; ``published``: there will be a new version.

    An alias that does not lead to what the state machine is now has been left so by a deployment
    that was cut off, or by a rollback.
    """
    if wanted is None:
        return
    there = next((a for a in current if a.name == wanted.name and a.routes), None)
    if there is None or published or not _leads(there) or there.description != wanted.description:
        yield Change(there, wanted)


def _leads(alias: Alias) -> bool:
    return [route.newest for route in alias.routes] == [True]


def left(wanted: Alias | None, current: Iterable[Alias]) -> Iterator[Change]:
    """Yield the deletion of each alias that an earlier deployment made, once nothing calls it."""
    for alias in current:
        if alias.made and (wanted is None or alias.name != wanted.name):
            yield Change(alias, None)
