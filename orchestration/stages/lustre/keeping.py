"""A file system that is kept between runs: every run finds the same one, and none deletes it.

Its client token comes from what is asked for and not from the run, so ``CreateFileSystem`` gives
the existing one, and another definition makes another one. Whose it is stands in its tags: the run
that used it last, and the hours for which it outlives that run. The sweep beside a state machine
deletes it when they are over; no clean-up of a run does, but of one that could not fill it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestration.errors import Problem
from orchestration.expressions import Function, Result, Tree, apply, join, run_id
from orchestration.expressions.evaluate import run_token
from orchestration.expressions.scalars import text
from orchestration.graph import Call, Operation, Retry
from orchestration.refs import Expression
from orchestration.stages.lustre.asking import LustreLink
from orchestration.stages.lustre.exporting import KEPT
from orchestration.stages.stage import Context

RUN: Final = "orchestration:run"
NO_RUN: Final = "none"
"""The run of a file system that no run has taken yet: every run must send the same request."""
_PERSISTENT = Retry(attempts=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The steps that take a file system over for a run, and leave it to later ones."""

    stage: str
    hours: int

    def tags(self, context: Context) -> list[Tree]:
        """Return the tags of a file system that is new: nobody's, and not worth keeping yet."""
        return [*context.tag_list(self.stage, run=NO_RUN), {"Key": KEPT, "Value": "0"}]

    def take(self) -> Call:
        """Name the run that uses it."""
        return self._tagged("take", {"Key": RUN, "Value": run_id()})

    def keep(self, after: tuple[str, ...]) -> Call:
        """Keep it from now on: it is filled."""
        return self._tagged("filled", {"Key": KEPT, "Value": str(self.hours)}, after)

    def _tagged(self, step: str, tag: Tree, after: tuple[str, ...] = ()) -> Call:
        arn = Result(f"{self.stage}.create", "arn")
        return Call(
            name=f"{self.stage}.{step}",
            operation=Operation("fsx", "TagResource", {"ResourceARN": arn, "Tags": [tag]}),
            retry=_PERSISTENT,
            after=after,
        )


def name(prefix: str, *asked: Tree) -> Expression[str]:
    """Return a client token that is another one for whatever else is asked for."""
    plain, values = list[str](), list[Expression[object]]()
    for part in _leaves(list(asked), ""):
        if isinstance(part, str):
            plain.append(part)
        else:
            values.append(part)
    known = run_token("\n".join(plain))
    if not values:
        return join(prefix, known)
    return join(prefix, apply(Function.HASH, join(known, *(p for v in values for p in (" ", v)))))


def _leaves(tree: Tree, path: str) -> Iterator[str | Expression[object]]:
    """Yield the values of a tree, each plain one with its place."""
    if isinstance(tree, Expression):
        yield f"{path}:"
        yield tree
    elif isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from _leaves(tree[key], f"{path}.{key}")
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for number, item in enumerate(tree):
            yield from _leaves(item, f"{path}.{number}")
    else:
        yield f"{path}={'null' if tree is None else text(tree)}"


def problems(links: tuple[LustreLink, ...]) -> Iterator[Problem]:
    """Yield the links whose place in S3 is a run's own."""
    for number, link in enumerate(links):
        if link.uri is None:
            message = "is required with keep_for_h: later runs find the same link"
            yield Problem(f"links[{number}].uri", message)
