"""Fingerprints of a stage's source, and records of those that earlier runs have seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    Fold,
    Graph,
    Operation,
    Output,
    Recovery,
    Require,
    Step,
    upstream,
)
from orchestration.refs import Expression
from orchestration.stages.listing import MOST_OBJECTS, listing, not_empty, pages, total
from orchestration.stages.stage import Context, Fragment, Look
from orchestration.stages.values import Text

MOST_PAGES: Final = 1000
"""Pages of a listing. One more writes seven of the 25,000 events of an execution."""
MOST_PAGES_OF_THREE: Final = 300
"""Of each listing of a stage that lists its source, and its destination before and after."""
_NONE: Final = {"body": ""}
ABSENT: Final = (
    ErrorPattern("NoSuchKey"),
    # The answer to who may not list the bucket.
    ErrorPattern("AccessDenied", "s3:ListBucket"),
)
"""The errors of a request for an object that does not exist."""
WRITTEN_BEFORE: Final = ErrorPattern("PreconditionFailed", "pre-conditions you specified")
"""The error of a request to write an object only where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The record of a stage's last copy."""

    uri: Expression[str]
    digest: str
    """A hash of how the stage copies: in another way, nothing is unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a stage."""

    stage: str
    uri: Text
    most: int
    """Pages of its listing at the most."""

    def steps(self) -> tuple[Call, Require]:
        """Return the listing, and the requirement that it is whole."""
        listed = paged(f"{self.stage}.fingerprint", self.uri, most=self.most)
        return listed, _countable(f"{self.stage}.countable", listed.name, self)

    @property
    def fingerprint(self) -> Result:
        """The fingerprint of all objects."""
        return Result(f"{self.stage}.fingerprint", "fingerprint")


def told(source: Source, fragment: Fragment) -> Fragment:
    """Return a stage that tells the fingerprint of its source."""
    listed, usable = source.steps()
    steps = (listed, usable, *behind(fragment.steps, (usable.name,)))
    return replace(fragment, steps=steps, outputs=_with(source, fragment.outputs))


def ending(source: Source, fragment: Fragment, uri: Expression[str]) -> Fragment:
    """Return a stage whose run ends where the last successful run saw the same."""
    listed, usable = source.steps()
    earlier = _recorded(f"{source.stage}.last_seen", uri, after=(usable.name,))
    look = Look(
        steps=(listed, usable, earlier),
        fingerprint=source.fingerprint,
        earlier=Result(earlier.name, "body"),
        record=uri,
    )
    return replace(fragment, look=look, outputs=_with(source, fragment.outputs))


def skipping(source: Source, target: Text, fragment: Fragment, record_of: Record) -> Fragment:
    """Return a stage that copies nothing where both ends are as its last copy left them.

    The record has the fingerprints of both, so whatever else was copied to the destination since,
    in whole or in part, is a change.
    """
    name = source.stage
    listed, usable = source.steps()
    before = paged(f"{name}.copied_before", target, most=source.most, after=(usable.name,))
    earlier = _recorded(f"{name}.last_seen", record_of.uri, after=(before.name,))
    last = _ends(fragment.steps)
    after = paged(f"{name}.copied_now", target, most=source.most, after=last)

    def token(end: Call) -> Expression[object]:
        both = (source.fingerprint, " ", Result(end.name, "fingerprint"), " ")
        return apply(Function.HASH, join(*both, record_of.digest))

    unchanged = apply(Function.CONTAINS, Result(earlier.name, "body"), token(before))
    content: dict[str, Tree] = {"source": source.uri, "token": token(after)}
    written = record(f"{name}.record", record_of.uri, content)
    copying = Choose(
        name=f"{name}.changed",
        condition=Compare("eq", unchanged, False),
        then=Graph((*fragment.steps, after, written)),
        otherwise=Graph(),
        after=(usable.name,),
    )
    outputs = {**_with(source, {"location": target}), "unchanged": unchanged}
    return Fragment(steps=(listed, usable, before, earlier, copying), outputs=outputs)


def record(name: str, uri: Expression[str], content: Mapping[str, Tree]) -> Call:
    """Return the call that writes a record."""
    request: dict[str, Tree] = {**_place(uri), "Body": dict(content)}
    return Call(name=name, operation=Operation("s3", "PutObject", request))


def _with(source: Source, outputs: Mapping[str, Tree]) -> dict[str, Tree]:
    return {**outputs, "fingerprint": source.fingerprint}


def _ends(steps: tuple[Step, ...]) -> tuple[str, ...]:
    read = frozenset[str]().union(*upstream(Graph(steps)).values())
    return tuple(step.name for step in steps if step.name not in read)


def paged(
    name: str,
    uri: Text,
    *,
    most: int = MOST_PAGES,
    told: Collection[str] = ("fingerprint", "count", "bytes", "more"),
    after: tuple[str, ...] = (),
) -> Call:
    """Return the listing of all objects below a URI: their fingerprint, number and bytes."""
    objects = Result(name, "objects")
    fingerprint = apply(Function.FINGERPRINT, Result(name, "fingerprint"), objects)
    folds = {
        "fingerprint": Fold(start="", then=fingerprint),
        "count": total(name, "count", apply(Function.COUNT, objects)),
        "bytes": total(name, "bytes", apply(Function.SUM, objects, "Size")),
        "more": Fold(start=False, then=Result(name, "truncated")),
    }
    kept = {output: fold for output, fold in folds.items() if output in told}
    return pages(listing(name, uri, texts=("Key", "ETag"), after=after), most, kept)


def _countable(name: str, listed: str, source: Source) -> Require:
    """Return the requirement that a listing holds something, and has come to its end."""
    count = Result(listed, "count")
    cause = join(
        f"stage {source.stage} expected 1 to {source.most * MOST_OBJECTS} objects, the most that "
        "a fingerprint is taken of, below ",
        source.uri,
        "; saw ",
        count,
    )
    more = Result(listed, "more")
    return not_empty(name, count, more, error="SourceNotUsable", cause=cause)


def record_uri(context: Context, stage: str) -> Expression[str]:
    """Return the S3 URI of what the last run has seen of a stage's source."""
    return join(context.workspace_uri, f"/fingerprints/{context.pipeline}/{stage}.json")


def _recorded(name: str, uri: Expression[str], *, after: tuple[str, ...]) -> Call:
    """Return the call that reads a record; its body is empty where there is none."""
    return Call(
        name=name,
        operation=Operation("s3", "GetObject", _place(uri)),
        outputs={"body": Output(("Body",), kind="string", default="")},
        recoveries=tuple(Recovery(error, _NONE) for error in ABSENT),
        after=after,
    )


def _place(uri: Expression[str]) -> dict[str, Tree]:
    return {"Bucket": apply(Function.S3_BUCKET, uri), "Key": apply(Function.S3_KEY, uri)}


def behind(steps: tuple[Step, ...], after: tuple[str, ...]) -> tuple[Step, ...]:
    """Return steps whose first ones wait for others."""
    before = upstream(Graph(steps))
    return tuple(
        step if before[step.name] else replace(step, after=(*step.after, *after)) for step in steps
    )
