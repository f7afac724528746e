"""Names that follow from what they stand for: what is deployed twice has one name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import Call, Failure, Operation, Output, Require
from orchestration.refs import Expression
from orchestration.stages.unchanged import paged
from orchestration.stages.values import Text

_MOST_PAGES: Final = 100
"""Pages of a listing of a model's files, 500 on each: what is polled shares an execution's events
with them."""
_ERROR: Final = "ModelNotUsable"
# S3 answers Forbidden for an object that does not exist to whoever may not list the bucket.
_UNUSABLE: Final = "nothing was changed; correct model_data, or let it be read"
_NAMES: Final = frozenset(["ModelName", "EndpointConfigName", "Tags"])


def fingerprint(name: str, data: Text, *, is_archive: bool) -> tuple[Call, Result]:
    """Return the call that looks at a model's files, and what it tells them from others by."""
    if not is_archive:
        listed = paged(name, data, most=_MOST_PAGES, told=("fingerprint", "count"))
        return listed, Result(name, "fingerprint")
    place = {"Bucket": apply(Function.S3_BUCKET, data), "Key": apply(Function.S3_KEY, data)}
    call = Call(
        name=name,
        operation=Operation("s3", "HeadObject", place),
        outputs={"etag": Output(("ETag",), kind="string")},
        failure=Failure(error=_ERROR, remedy=_UNUSABLE),
    )
    return call, Result(name, "etag")


def not_empty(stage: str, listed: Call, data: Text) -> Require:
    """Require that the listing of a model's folder has found a file."""
    return Require(
        name=f"{listed.name}_found",
        condition=Compare("gt", Result(listed.name, "count"), 0),
        error=_ERROR,
        cause=join(f"stage {stage}: no file of the model is below ", data, f"; {_UNUSABLE}"),
    )


def named_after(
    prefix: str, content: Text, requests: Sequence[Mapping[str, Tree]]
) -> Expression[str]:
    """Return a name that is the same for equal content and requests, and for no others.

    The requests' own names and tags, which tell runs apart, do not count.
    """
    parts: list[Expression[object]] = []

    def plain(tree: Any) -> Any:
        if isinstance(tree, Expression):
            parts.append(tree)
            return {"part": len(parts)}
        if isinstance(tree, Mapping):
            return {key: plain(tree[key]) for key in sorted(tree) if key not in _NAMES}
        if isinstance(tree, list | tuple):
            return [plain(item) for item in tree]
        return tree

    text = json.dumps([plain(request) for request in requests])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    written = [piece for part in parts for piece in (" ", part)]
    return join(prefix, apply(Function.HASH, join(digest, " ", content, *written)))
