"""The changes that bring the aliases of a state machine to what a pipeline says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestration.deploy.aliases.model import Alias, Route
from orchestration.deploy.resources import Change


def made(wanted: Alias | None, current: Sequence[Alias], *, published: bool) -> Iterator[Change]:
    """Yield the change of the alias that is wanted; ``published``: there will be a new version.

    An alias that does not lead to what the state machine is now has been left so by a deployment
    that was cut off, or by a rollback.
    """
    if wanted is None:
        return
    there, former = _there(wanted, current), _former(wanted, current)
    routes = _routes(wanted, former, published=published)
    before = () if former is None else former.moved(routes).before
    after = replace(wanted, routes=routes, before=before)
    if there is None or there.aspects() != after.aspects():
        yield Change(there, after)


def kept(wanted: Alias | None, current: Sequence[Alias], *, published: bool) -> Route | None:
    """Return the version that gets runs beside the new one, where a deployment leaves two."""
    if wanted is None:
        return None
    routes = _routes(wanted, _former(wanted, current), published=published)
    return routes[0] if len(routes) > 1 else None


def _there(wanted: Alias, current: Sequence[Alias]) -> Alias | None:
    return next((a for a in current if a.name == wanted.name and a.routes), None)


def _former(wanted: Alias, current: Sequence[Alias]) -> Alias | None:
    """Return the alias, or that of another name which an earlier deployment made."""
    made = (alias for alias in current if alias.made and alias.routes)
    return _there(wanted, current) or next(made, None)


def _routes(wanted: Alias, there: Alias | None, *, published: bool) -> tuple[Route, ...]:
    """Return what an alias leads to: a new version, at first perhaps beside the one before."""
    everything = (Route(weight=100),)
    if there is None:
        return everything
    tried = not published and there.routes[-1].newest
    if tried and (wanted.trial is not None or len(there.routes) == 1):
        return there.routes
    if tried:
        return (replace(there.routes[-1], weight=100),)
    if wanted.trial is None:
        return everything
    # While another version is tried, the older one is the one that is known to work.
    percent = wanted.trial.percent
    return (replace(there.routes[0], weight=100 - percent), Route(weight=percent))


def left(wanted: Alias | None, current: Sequence[Alias]) -> Iterator[Change]:
    """Yield the deletion of each alias that an earlier deployment made, once nothing calls it."""
    for alias in current:
        if alias.made and (wanted is None or alias.name != wanted.name):
            yield Change(alias, None)
