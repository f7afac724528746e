"""Objects of S3 that are read and listed while others replace and delete them.

moto 5.2.5 closes the content of an object that is replaced or deleted, under whoever reads it, and
a listing fails at a key that is deleted meanwhile. S3 gives the one content or the other.
`tests/local/s3/test_concurrency.py` fails without this module.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestration.local.engine.seams import replace


def install() -> None:
    """Let objects stay readable, and listings go through copies."""
    from moto.s3.models import FakeKey
    from moto.s3.utils import _VersionedKeyStore

    replace(FakeKey, "dispose", _kept(FakeKey.dispose))
    for name, view in (("items", _items), ("values", _values), ("lists", _lists)):
        replace(_VersionedKeyStore, name, view)


def _kept(dispose: Any) -> Any:
    def mark(self: Any, garbage: bool = False) -> None:
        # The content is closed once nobody holds it any more.
        if garbage:
            dispose(self, garbage)
        else:
            self.disposed = True

    return mark


def _lists(store: Any) -> Iterator[tuple[str, list[Any]]]:
    # Not one by one: others take turns between the steps of a loop.
    for key, versions in list(dict.items(store)):
        yield key, list(versions)


def _items(store: Any) -> Iterator[tuple[str, Any]]:
    for key, versions in _lists(store):
        # Between the deletion of its last version and its own, a key has none.
        if versions:
            yield key, versions[-1]


def _values(store: Any) -> Iterator[Any]:
    for _, newest in _items(store):
        yield newest
