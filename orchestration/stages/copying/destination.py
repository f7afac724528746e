"""A place in S3 that data is copied to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import All, Compare, Function, Result, Tree, apply
from orchestration.graph import Choose, Graph, Step
from orchestration.stages.copying import datasync, objects
from orchestration.stages.listing import listing
from orchestration.stages.stage import Context, Fragment
from orchestration.stages.values import Model, Text, s3_problem

Pattern = str
LARGEST_COPY: Final = 5 * 1024**3
"""Bytes that one ``CopyObject`` copies at the most."""


class S3Destination(Model):
    """A copy in S3, verified: object by object, or by DataSync, which has no limit on either."""

    kind: Literal["s3"] = "s3"
    uri: Text | None = None
    """Prefix to copy to; by default the run's own place in the workspace. Objects there that
    are not in the source fail the verification of ``copy_by: objects``; DataSync leaves them."""
    copy_by: Literal["objects", "datasync", "automatic"] = "objects"
    """``objects``: at most 500 objects of at most 5 GiB each. ``datasync``: any number of any size,
    by AWS DataSync in Enhanced mode, which verifies each; it takes minutes to begin, and costs per
    GB and execution. ``automatic``: objects one by one where there are at most 500 with 5 GiB
    together, else DataSync."""
    datasync_role: Text | None = None
    """ARN of the role in this account by which DataSync reads the source and writes the copy; it
    trusts ``datasync.amazonaws.com``. By default the pipeline's role."""
    include: tuple[Pattern, ...] = ()
    """Folders and objects below the source to copy, where not all of it: ``/train``, ``/2024*``; a
    wildcard may stand at the end only. ``copy_by: datasync`` only."""
    exclude: tuple[Pattern, ...] = ()
    """Folders and objects to leave out: ``/raw``, ``*.tmp``. ``copy_by: datasync`` only."""
    storage_class: (
        Literal["STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_INSTANT_RETRIEVAL"]
        | None
    ) = None
    """Storage class of the copies: one that can be read at once; by default ``STANDARD``."""
    max_concurrency: int = Field(default=8, ge=1, le=40)
    """Copies at a time of ``copy_by: objects``."""
    timeout_s: int = Field(default=86_400, ge=300)
    """The longest time that DataSync may take."""

    def check(self) -> Iterator[Problem]:
        """Yield what neither S3 nor DataSync would take."""
        yield from s3_problem("uri", self.uri)
        if self.copy_by == "objects" and self.datasync_role is not None:
            yield Problem("datasync_role", "is for copy_by: datasync; remove it, or copy so")
        for name in ("include", "exclude"):
            patterns: tuple[str, ...] = getattr(self, name)
            if patterns and self.copy_by != "datasync":
                yield Problem(name, "is for copy_by: datasync only: a listing can't be filtered")
            yield from datasync.misplaced(name, patterns)

    def lower(self, name: str, source: Text, context: Context) -> Fragment:
        """Return the steps of a stage that copies here."""
        target = self.uri if self.uri is not None else context.location(name)
        by_datasync = datasync.Transfer(
            stage=name,
            context=context,
            source=source,
            target=target,
            role=context.role if self.datasync_role is None else self.datasync_role,
            include=self.include,
            exclude=self.exclude,
            storage_class=self.storage_class,
            timeout_s=self.timeout_s,
        )
        outputs: dict[str, Tree] = {"location": target}
        if self.copy_by == "datasync":
            steps: tuple[Step, ...] = by_datasync.steps()
            outputs |= by_datasync.outputs()
            return Fragment(steps=steps, outputs=outputs)
        one_by_one = objects.steps(
            name,
            source,
            target,
            max_concurrency=self.max_concurrency,
            storage_class=self.storage_class,
        )
        listed = listing(f"{name}.list", source)
        if self.copy_by == "objects":
            outputs |= objects.outputs(name)
            return Fragment(steps=(listed, *one_by_one), outputs=outputs)
        choice = Choose(
            name=f"{name}.few",
            condition=_few_and_small(name),
            then=Graph(one_by_one),
            otherwise=Graph(by_datasync.steps()),
        )
        return Fragment(steps=(listed, choice), outputs=outputs)


def _few_and_small(name: str) -> All:
    size = apply(Function.SUM, Result(f"{name}.list", "objects"), "Size")
    return All(
        (
            Compare("eq", Result(f"{name}.list", "truncated"), False),
            Compare("le", size, LARGEST_COPY),
        )
    )
