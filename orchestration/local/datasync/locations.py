"""Locations: the ends of a transfer, each with files of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from orchestration.local.account.protocol import JsonObject


class File(Protocol):
    """One file, or one object."""

    @property
    def size(self) -> int:
        """Its bytes."""

    @property
    def etag(self) -> str | None:
        """Its ETag, if it is an object."""

    def content(self) -> bytes:
        """Read it."""


class Location(Protocol):
    """One location."""

    arn: str
    tags: dict[str, str]

    @property
    def kind(self) -> str:
        """The kind of storage, as the operation that makes the location names it."""

    @property
    def uri(self) -> str:
        """The location as DataSync writes it."""

    @property
    def region(self) -> str | None:
        """The region of the storage; None if it is gone."""

    def description(self) -> JsonObject:
        """Return the location as in a Describe response."""

    def files(self) -> Mapping[str, File]:
        """Return all files, by their paths below the location."""

    def lets_read(self, path: str) -> bool:
        """Return whether the location's role may read a file."""

    def lets_write(self, path: str) -> bool:
        """Return whether the location's role may write a file."""

    def write(self, path: str, file: File, options: JsonObject) -> None:
        """Write a copy of a file, as the options of the task say."""

    def remove(self, path: str) -> None:
        """Delete a file."""


def same(file: File, other: File | None) -> bool:
    """Return whether two files have the same content."""
    if other is None or file.size != other.size:
        return False
    if file.etag is not None and other.etag is not None:
        return file.etag == other.etag
    return file.content() == other.content()


def directories(paths: Iterable[str]) -> set[str]:
    """Return the directories around files, which Basic mode counts along with them."""
    around: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in around:
            around.add(parent)
            parent = parent.rpartition("/")[0]
    return around
