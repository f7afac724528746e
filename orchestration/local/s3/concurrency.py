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
    for kind, name, instead in seams():
        replace(kind, name, instead)


def seams() -> Iterator[tuple[type, str, Any]]:
    """Yield what is replaced: a class of moto's, the name there, and what comes instead."""
    from moto.s3.models import FakeKey, FakeMultipart
    from moto.s3.utils import _VersionedKeyStore

    yield FakeKey, "dispose", _kept(FakeKey.dispose)
    # moto has a list of all objects that ever were, so that nothing of them would be closed.
    for kind in (FakeKey, FakeMultipart):
        yield kind, "__new__", _untracked
    for name, view in (("items", _items), ("values", _values), ("lists", _lists)):
        yield _VersionedKeyStore, name, view
        yield _VersionedKeyStore, f"iter{name}", view


def _untracked(kind: type, *_: Any, **__: Any) -> Any:
    return object.__new__(kind)


def _kept(dispose: Any) -> Any:
    def mark(self: Any, garbage: bool = False) -> None:
        # The content is closed once nobody holds it any more, which is in time.
        if garbage:
            dispose(self)
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
