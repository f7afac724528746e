"""What a request will hold, as far as it is known before any run: text with wildcards.

The names that stages derive begin with what never changes (``digits-train-``), so a wildcard at
their end is as narrow as a policy can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestration.expressions import (
    Apply,
    Field,
    Function,
    Item,
    Join,
    Json,
    Parameter,
    Result,
    Tree,
)
from orchestration.expressions.scalars import text
from orchestration.graph import Call, Graph, all_steps
from orchestration.refs import Expression

ANY = "\0"
"""Stands for any text; no AWS name holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of every run that a policy has to allow."""

    parameters: Mapping[str, Json]
    listings: Mapping[str, Tree]
    """The prefix that each listing of S3 asks for: what it finds begins with it."""
    items: Tree = None
    """The list that the enclosing loop goes over."""
    missing: set[str] = field(default_factory=set)
    """Parameters that were asked for and have no value; they count as any text."""

    def inside(self, items: Tree) -> Known:
        """What is known inside a loop over a list."""
        return replace(self, items=items)


def listings(graph: Graph) -> dict[str, Tree]:
    """The prefixes of a graph's listings, by step."""
    return {
        step.name: step.operation.request.get("Prefix", "")
        for step in all_steps(graph)
        if isinstance(step, Call)
        and (step.operation.service, step.operation.name) == ("s3", "ListObjectsV2")
    }


def pattern(tree: Tree, known: Known) -> str:
    """The text that a tree will be, with :data:`ANY` for what only a run knows."""
    match tree:
        case Join(parts):
            return "".join(pattern(part, known) for part in parts)
        case Parameter(name):
            return _parameter(name, known)
        case Field(Item(), "Key" | "Prefix"):
            return _listed(known)
        case Apply(function, arguments):
            return _applied(function, arguments, known)
        case Expression():
            return ANY
        case None:
            return ""
        case bool() | int() | float() | str():
            return text(tree)
        case _:
            return ANY


def iam(found: str) -> str:
    """The pattern as IAM writes it; wildcards in the text itself are no wildcards.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#policy-vars-specialchars

    >>> iam("data/a*b/" + ANY)
    'data/a${*}b/*'
    """
    while ANY * 2 in found:
        found = found.replace(ANY * 2, ANY)
    escaped = "".join(f"${{{c}}}" if c in "*?$" else c for c in found)
    return escaped.replace(ANY, "*")


def _parameter(name: str, known: Known) -> str:
    if name not in known.parameters:
        known.missing.add(name)
        return ANY
    value = known.parameters[name]
    return ANY if value is None else text(value)


def _listed(known: Known) -> str:
    if isinstance(known.items, Result) and known.items.step in known.listings:
        return pattern(known.listings[known.items.step], known) + ANY
    return ANY


def _applied(function: Function, arguments: Sequence[Tree], known: Known) -> str:
    match function:
        case Function.S3_BUCKET:
            return _s3(pattern(arguments[0], known))[0]
        case Function.S3_KEY:
            return _s3(pattern(arguments[0], known))[1]
        case Function.URL_PATH | Function.TEXT:
            # IAM sees the key itself, not how it is written in a header.
            return pattern(arguments[0], known)
        case Function.DIRECTORY:
            return pattern(arguments[0], known).removesuffix("/") + "/"
        case _:
            return ANY


def _s3(uri: str) -> tuple[str, str]:
    if not uri.startswith("s3://"):
        return ANY, ANY
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    # What is any text may hold slashes: then the key begins inside of it.
    return (bucket, ANY + key) if ANY in bucket else (bucket, key)
