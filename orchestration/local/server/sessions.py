"""Sessions of roles: clients that may do what a role's policies allow."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any


class RoleSession:
    """A factory of boto3 clients that act as a role, as a ``boto3.Session`` of its credentials.

    It is a session as services have them, whatever the role's trust policy says. Only an embedded
    AWS with ``enforce_iam`` restricts it.
    """

    def __init__(self, new_client: Callable[..., Any], keys: tuple[str, str, str]) -> None:
        self._new_client = new_client
        self._keys = keys

    def client(self, service_name: str, /) -> Any:
        """Create a client for a service."""
        return self._new_client(service_name, credentials=self._keys)


@functools.cache
def boto_session() -> Any:
    """Return one boto3 session for all accounts, which reads botocore's megabytes of JSON once."""
    import boto3
    import botocore.session

    nothing_of_the_users = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    session = botocore.session.Session(session_vars=nothing_of_the_users)
    return boto3.session.Session(botocore_session=session)


@functools.cache
def load_once() -> None:
    """Let the sessions of this process share what botocore would do for each of them again.

    It parses megabytes of service models, looks at the parameters of two hundred handlers, compares
    their names with a hundred aliases, and makes a method for each of SageMaker's 400 operations: a
    quarter of a run on Airflow.
    """
    import botocore.hooks
    import botocore.regions
    import botocore.session

    botocore.session.create_loader = functools.cache(botocore.session.create_loader)
    known = functools.lru_cache(maxsize=1024)(botocore.hooks.accepts_kwargs)

    def accepts_kwargs(handler: Any) -> Any:
        # Of a bound method only the function is kept, and not the client that it belongs to.
        return known(getattr(handler, "__func__", handler))

    botocore.hooks.accepts_kwargs = accepts_kwargs
    _name_events_once()
    _make_methods_once()
    botocore.regions.EndpointProvider = _by_identity(botocore.regions.EndpointProvider)


def _name_events_once() -> None:
    from botocore.hooks import EventAliaser

    named = functools.lru_cache(maxsize=8192)(EventAliaser(None)._alias_event_name)
    EventAliaser._alias_event_name = lambda _, name: named(name)


def _make_methods_once() -> None:
    """Let clients of a service share their methods, which know nothing of the client."""
    from botocore.client import ClientCreator

    make = ClientCreator._create_methods
    made: dict[tuple[type, str, str], dict[str, Any]] = {}

    def create_methods(creator: Any, model: Any) -> dict[str, Any]:
        key = (type(creator), model.service_name, model.api_version)
        if key not in made:
            made[key] = make(creator, model)
        return dict(made[key])

    ClientCreator._create_methods = create_methods


def _by_identity(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes one object of the same arguments, and keeps both."""
    made: dict[tuple[int, ...], tuple[Any, dict[str, Any]]] = {}

    def once(**given: Any) -> Any:
        key = tuple(id(given[name]) for name in sorted(given))
        if key not in made:
            made[key] = (make(**given), given)
        return made[key][0]

    return once
