"""Calls of AWS whose refusal is an error of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchestration.errors import StartError


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Raise what AWS refuses as a :class:`~orchestration.errors.StartError`: ``what`` failed."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"{what} can't be read: {error}") from error
