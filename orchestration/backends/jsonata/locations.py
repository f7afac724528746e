"""Buckets and keys of S3 URIs that are known to begin with ``s3://``."""

from __future__ import annotations

from typing import Final, NamedTuple

from orchestration.expressions import Apply, Function, Join, Tree, apply, join
from orchestration.refs import Expression

SCHEME: Final = "s3://"


class Place(NamedTuple):
    """The rest of a URI after its scheme, divided behind its first slash in a literal."""

    head: str | Expression[object]
    """It ends with that slash. There may be slashes before it, in what only a run knows."""
    path: tuple[str | Expression[object], ...]
    """The parts after that slash."""


def location(uri: Tree) -> tuple[Tree, Tree]:
    """Return the bucket and the key of an object, for a request that has both.

    Whatever makes the URI wrong is refused by one of the two.
    """
    rest = after_scheme(uri)
    place = split(rest) if isinstance(rest, Join) else None
    if place is None:
        return apply(Function.S3_BUCKET, uri), apply(Function.S3_KEY, uri)
    return apply(Function.S3_BUCKET, join(SCHEME, place.head)), key_of(place)


def key_of(place: Place) -> Expression[str]:
    """Return the key as a text that begins with what stands before the first known slash."""
    if isinstance(place.head, str):
        return join(place.head.partition("/")[2], *place.path)
    return join(apply(Function.S3_KEY, join(SCHEME, place.head)), *place.path)


def split(rest: Join) -> Place | None:
    """Divide what follows the scheme, if a literal in it has a slash."""
    for number, part in enumerate(rest.parts):
        if isinstance(part, str) and "/" in part:
            before, slash, behind = part.partition("/")
            head = join(*rest.parts[:number], before + slash)
            path = join(behind, *rest.parts[number + 1 :])
            parts = path.parts if isinstance(path, Join) else ()
            return Place(before + slash if number == 0 else head, parts)
    return None


def after_scheme(uri: Tree) -> str | Join | None:
    """Return what follows ``s3://`` in a text that is known to begin so."""
    if isinstance(uri, Apply) and uri.function is Function.DIRECTORY:
        uri = _with_slash(uri.arguments[0])
    if isinstance(uri, str) and uri.startswith(SCHEME):
        return uri.removeprefix(SCHEME)
    if isinstance(uri, Join) and uri.parts:
        first = uri.parts[0]
        if isinstance(first, str) and first.startswith(SCHEME):
            rest = join(first.removeprefix(SCHEME), *uri.parts[1:])
            return rest if isinstance(rest, Join) else None
    return None


def _with_slash(uri: Tree) -> Tree:
    """Return a directory's URI, where its end is known."""
    if isinstance(uri, str):
        return uri.removesuffix("/") + "/"
    if isinstance(uri, Join) and uri.parts and isinstance(uri.parts[-1], str) and uri.parts[-1]:
        return uri if uri.parts[-1].endswith("/") else join(*uri.parts, "/")
    return None
