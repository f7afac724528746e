"""Listings of S3, one page each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestration.expressions import All, Compare, Function, Result, Tree, apply
from orchestration.graph import Call, Fold, Operation, Output, Pages, Require
from orchestration.refs import Expression
from orchestration.stages.values import Text

MOST_OBJECTS = 500
"""Objects that one listing step handles: a Step Functions payload holds 256 KiB, and S3 describes
an object in up to about 450 bytes."""


def not_empty(name: str, count: Tree, more: Tree, *, error: str, cause: Tree) -> Require:
    """Return the requirement that a listing holds something, and that nothing was cut off."""
    condition = All((Compare("gt", count, 0), Compare("eq", more, False)))
    return Require(name=name, condition=condition, error=error, cause=cause)


def prefix_of(uri: Text) -> Expression[object]:
    """The key prefix of an S3 URI with a slash at its end, so that no sibling shares it."""
    return apply(Function.S3_KEY, apply(Function.DIRECTORY, uri))


def listing(
    name: str,
    uri: Text,
    *,
    texts: Sequence[str] = ("Key",),
    numbers: Sequence[str] = ("Size",),
    owner: str | None = None,
    one: bool = False,
    after: tuple[str, ...] = (),
) -> Call:
    """A listing of the objects below a URI, each with some texts and numbers.

    ``owner`` is the AWS account that the bucket must belong to. With ``one`` the URI is that of an
    object, and what is listed are the objects whose keys begin so.
    """
    request: dict[str, Any] = {
        "Bucket": apply(Function.S3_BUCKET, uri),
        "Prefix": apply(Function.S3_KEY, uri) if one else prefix_of(uri),
        "MaxKeys": MOST_OBJECTS,
        **({} if owner is None else {"ExpectedBucketOwner": owner}),
    }
    return Call(
        name=name,
        operation=Operation("s3", "ListObjectsV2", request),
        outputs={
            "objects": Output(
                ("Contents",),
                kind="list",
                columns=(*texts, *numbers),
                texts=tuple(texts),
                numbers=tuple(numbers),
                default=(),
            ),
            "truncated": Output(("IsTruncated",), default=False),
        },
        after=after,
    )


def pages(call: Call, most: int, folds: Mapping[str, Fold]) -> Call:
    """Return a listing that asks for up to ``most`` pages, and gives folds over them."""
    way = Pages(token=("NextContinuationToken",), field="ContinuationToken", most=most, folds=folds)
    return replace(call, pages=way)


def total(call: str, output: str, of_page: Expression[object]) -> Fold:
    """Return a fold that adds up what each page has."""
    return Fold(
        start=0, then=apply(Function.SUM, [{"n": Result(call, output)}, {"n": of_page}], "n")
    )


def counted(
    name: str, uri: Text, *, most: int, one: bool = False, after: tuple[str, ...] = ()
) -> Call:
    """Return the listing of all objects below a URI: the ``files`` among them, and ``bytes``.

    ``more`` is true if there are more than ``most`` pages of them.
    """
    objects = Result(name, "objects")
    folds = {
        "files": total(name, "files", apply(Function.COUNT_FILES, objects)),
        "bytes": total(name, "bytes", apply(Function.SUM, objects, "Size")),
        "more": Fold(start=False, then=Result(name, "truncated")),
    }
    return pages(listing(name, uri, one=one, after=after), most, folds)
