"""Idempotency: what earlier requests with the same client token created."""

from __future__ import annotations

from typing import Generic, TypeVar

from orchestration.local.account.protocol import JsonObject, ServiceError

T = TypeVar("T")


class Tokens(Generic[T]):
    """The resources that were created, by the token and the request."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[JsonObject, T]] = {}

    def known(self, request: JsonObject) -> T | None:
        """Return what an equal request created, or None; raise if only the token is equal."""
        token = request.get("ClientRequestToken")
        if token is None or token not in self._known:
            return None
        earlier, resource = self._known[token]
        if earlier != request:
            raise ServiceError(
                "IncompatibleParameterError",
                "The request was made with the same client token and other parameters.",
                Parameter="ClientRequestToken",
            )
        return resource

    def forget(self, resource: T) -> None:
        """Let the token of a resource that is gone create another one."""
        for token, (_, other) in list(self._known.items()):
            if other is resource:
                self._known.pop(token, None)

    def remember(self, request: JsonObject, resource: T) -> None:
        """Note what a request created."""
        if request.get("ClientRequestToken"):
            self._known[request["ClientRequestToken"]] = (request, resource)
