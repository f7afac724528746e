"""A client of Airflow's REST API, version 2.

https://airflow.apache.org/docs/apache-airflow/stable/stable-rest-api-ref.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from orchestration.errors import StartError
from orchestration.expressions import Json

_TIMEOUT_S: Final = 60.0
_RETRIES: Final = 3
_PAGE: Final = 100
"""Airflow's default for the most entries of a page (``[api] maximum_page_limit``)."""


class Refused(StartError):
    """A request that Airflow refused."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)

    def __reduce__(self) -> tuple[type[Refused], tuple[int, str]]:
        return type(self), (self.status, str(self))


class Api:
    """Airflow's API server at a URL; ``token`` is what its ``/auth/token`` gives."""

    def __init__(self, url: str, token: str) -> None:
        from urllib3 import PoolManager, Retry

        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise StartError(f"expected the URL of Airflow's API server, https://…, got {url!r}")
        self._url = f"{url.rstrip('/')}/api/v2"
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        # Only what changes nothing is sent again; and a token is not for where a redirect leads.
        retries = Retry(_RETRIES, redirect=0, allowed_methods={"GET"}, backoff_factor=0.5)
        self._pool = PoolManager(retries=retries, timeout=_TIMEOUT_S)

    def get(self, *path: str, **query: Any) -> Any:
        """Ask for something."""
        return self._sent("GET", path, query)

    def every(
        self, key: str, *path: str, most: int | None = None, page: int = _PAGE, **query: Any
    ) -> Iterator[Any]:
        """Yield the entries of a collection, so many of a ``page`` at a time."""
        seen = 0
        while most is None or seen < most:
            limit = page if most is None else min(page, most - seen)
            answered = self.get(*path, limit=limit, offset=seen, **query)
            yield from answered[key]
            seen += len(answered[key])
            if not answered[key] or seen >= answered["total_entries"]:
                return

    def post(self, *path: str, body: Mapping[str, Json]) -> Any:
        """Make something."""
        return self._sent("POST", path, body=body)

    def patch(self, *path: str, body: Mapping[str, Json]) -> Any:
        """Change something."""
        return self._sent("PATCH", path, body=body)

    def _sent(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Json] | None = None,
    ) -> Any:
        from urllib3.exceptions import HTTPError

        url = "/".join([self._url, *(quote(part, safe="") for part in path)])
        options: dict[str, Any] = {"headers": self._headers}
        if body is not None:
            options["headers"] = {**self._headers, "Content-Type": "application/json"}
            options["body"] = json.dumps(body).encode()
        try:
            response = self._pool.request(
                method, f"{url}?{urlencode(query)}" if query else url, redirect=False, **options
            )
        except HTTPError as error:
            raise StartError(f"Airflow at {self._url} can't be reached: {error}") from error
        if response.status >= 300:
            raise Refused(response.status, self._refusal(response.status, response.data))
        try:
            return json.loads(response.data)
        except ValueError as error:
            raise StartError(f"{self._url} is no API server of Airflow 3: {error}") from error

    def _refusal(self, status: int, content: bytes) -> str:
        try:
            detail = json.loads(content)["detail"]
        except (ValueError, KeyError, TypeError):
            detail = content.decode(errors="replace")[:300]
        way_out = "" if status not in (401, 403) else (
            "; take a new token from its /auth/token, of a user who may do this"
        )  # fmt: skip
        return f"Airflow at {self._url} answers {status}: {detail}{way_out}"
