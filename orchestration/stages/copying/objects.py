"""Copies made object by object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.expressions import (
    All,
    Compare,
    Function,
    Item,
    Result,
    Tree,
    apply,
    field,
    join,
)
from orchestration.graph import Call, ForEach, Graph, Operation, Output, Require, Step
from orchestration.refs import Expression
from orchestration.stages.listing import MOST_OBJECTS, listing, prefix_of
from orchestration.stages.values import Text

LARGEST_COPY: Final = 5 * 1024**3
"""Bytes that one ``CopyObject`` copies at the most."""


def steps(
    name: str,
    source: Text,
    target: Text,
    *,
    max_concurrency: int,
    options: Mapping[str, Tree],
    decrypts: Tree,
) -> tuple[Step, ...]:
    """Copy and compare; the listing of the source is another step, ``<stage>.list``.

    ``options`` are further fields of ``CopyObject``; ``decrypts`` is the source's KMS key.
    """
    objects = Result(f"{name}.list", "objects")
    copy = _copied(name, source, target, options, decrypts)
    described = _described(name, source, options, decrypts)
    return (
        _some(name, source, objects),
        ForEach(
            name=f"{name}.copy",
            items=objects,
            body=Graph((copy, described)),
            collect={
                "Key": _target_key(source, target),
                "Size": field(Item(), "Size"),
                "Same": apply(
                    Function.SAME_CONTENT,
                    Result(described.name, "source"),
                    Result(copy.name, "copy"),
                    Result(copy.name, "encryption"),
                ),
            },
            max_concurrency=max_concurrency,
            after=(f"{name}.usable",),
        ),
        listing(f"{name}.verify", target, after=(f"{name}.copy",)),
        _equal(name, objects),
    )


def outputs(name: str) -> dict[str, Tree]:
    """Return what is known of the copies."""
    staged = Result(f"{name}.verify", "objects")
    return {
        "object_count": apply(Function.COUNT, staged),
        "total_bytes": apply(Function.SUM, staged, "Size"),
    }


def _some(name: str, source: Text, objects: Result) -> Require:
    count, largest = apply(Function.COUNT, objects), apply(Function.LARGEST, objects, "Size")
    cause = join(
        f"stage {name} expected 1 to {MOST_OBJECTS} objects of at most 5 GiB each below ",
        source,
        " (copy_by: datasync copies others); saw ",
        count,
        ", the largest of ",
        largest,
        " bytes",
    )
    conditions = (
        Compare("gt", count, 0),
        Compare("eq", Result(f"{name}.list", "truncated"), False),
        Compare("le", largest, LARGEST_COPY),
    )
    return Require(
        name=f"{name}.usable", condition=All(conditions), error="SourceNotUsable", cause=cause
    )


def _target_key(source: Text, target: Text) -> Expression[str]:
    relative = apply(Function.REMOVE_PREFIX, field(Item(), "Key"), prefix_of(source))
    return join(prefix_of(target), relative)


def _copied(
    name: str, source: Text, target: Text, options: Mapping[str, Tree], decrypts: Tree
) -> Call:
    key = field(Item(), "Key")
    request: dict[str, Tree] = {
        "Bucket": apply(Function.S3_BUCKET, target),
        "Key": _target_key(source, target),
        "CopySource": join(apply(Function.S3_BUCKET, source), "/", apply(Function.URL_PATH, key)),
        # The copy is of what was listed, byte for byte, or there is none.
        "CopySourceIfMatch": field(Item(), "ETag"),
        **options,
    }
    return Call(
        name=f"{name}.copy.object",
        operation=Operation("s3", "CopyObject", request, decrypts),
        outputs={
            "copy": Output(("CopyObjectResult",), kind="object"),
            "encryption": Output(("ServerSideEncryption",), default=""),
        },
    )


def _described(name: str, source: Text, options: Mapping[str, Tree], decrypts: Tree) -> Call:
    # After the copy: what keeps it from reading the source has an error with a name there.
    owner = options.get("ExpectedSourceBucketOwner")
    request: dict[str, Tree] = {
        "Bucket": apply(Function.S3_BUCKET, source),
        "Key": field(Item(), "Key"),
        "ChecksumMode": "ENABLED",
        **({} if owner is None else {"ExpectedBucketOwner": owner}),
    }
    return Call(
        name=f"{name}.copy.source",
        operation=Operation("s3", "HeadObject", request, decrypts),
        outputs={"source": Output((), kind="object")},
        after=(f"{name}.copy.object",),
    )


def _equal(name: str, objects: Result) -> Require:
    staged = Result(f"{name}.verify", "objects")
    count, size = Function.COUNT, Function.SUM
    copies = apply(Function.WHERE, Result(f"{name}.copy", "items"), "Same", "eq", True)
    same = All(
        (
            Compare("eq", apply(count, objects), apply(count, copies)),
            Compare("eq", apply(count, objects), apply(count, staged)),
            Compare("eq", apply(size, objects, "Size"), apply(size, staged, "Size")),
        )
    )
    cause = join(
        "source: ",
        apply(count, objects),
        " objects; staged: ",
        apply(count, staged),
        "; these differ: ",
        apply(Function.DIFFERENCE, copies, staged),
    )
    return Require(name=f"{name}.verified", condition=same, error="StagedDataDiffers", cause=cause)
