"""The nodes of the expression language: frozen data, nothing evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias, TypeVar, cast

from orchestration.errors import ExpressionError
from orchestration.expressions.scalars import text
from orchestration.refs import (
    ArnName,
    Each,
    Expression,
    FirstOf,
    Join,
    Parameter,
    Ref,
    Run,
    RunAttempt,
    RunOutcome,
    TimeText,
    join,
)

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A JSON value."""
Tree: TypeAlias = (
    "bool | int | float | str | Expression[object] | Sequence[Tree] | Mapping[str, Tree] | None"
)
"""A JSON value with expressions anywhere in it."""

SCALARS: Final = (str, int, float, type(None))
"""The types of values that hold no others. A tuple, since unions are made anew at each use."""

Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge"]
Direction = Literal["max", "min"]


class Function(StrEnum):
    """Functions that every backend has, with equal results."""

    HASH = "hash"
    """``text -> text``: the first 12 hexadecimal digits of its SHA-256."""
    FINGERPRINT = "fingerprint"
    """``text, list of objects of S3 -> text``: the SHA-256 of a text and, of each object, a line
    with Size, ETag and Key. The text may be the fingerprint of the objects listed before."""
    CONTAINS = "contains"
    """``text, text -> boolean``: true if the second is a part of the first."""
    COUNT = "count"
    """``list -> number``."""
    COUNT_FILES = "count_files"
    """``list of objects with a text Key -> number``: the keys that do not end with a slash, as
    those of directories do."""
    SUM = "sum"
    """``list of objects, key -> number``: the sum of one field."""
    LARGEST = "largest"
    """``list of objects, key -> number``: the largest value of one field, and at least 0."""
    NUMBERED = "numbered"
    """``list of objects, key -> list``: those whose field is a number, and a finite one."""
    WHERE = "where"
    """``list of objects, key, comparison, value -> list``: those that have the field, and whose
    field compares so with the value. Where the comparison is one of order, what is no finite number
    is left out."""
    PICKED = "picked"
    """``list of objects with a text Prefix, regular expression, every, last -> list``: those whose
    Prefix matches, in the order of the last number in it (without one: before all), of equals in
    that of the Prefix; of these every n-th, counted from the last one, and of these the last ones,
    where 0 stands for all. Slashes of the expression stand in brackets."""
    TOP = "top"
    """``list of objects, key, "max" or "min", count -> list``: so many whose field is largest or
    smallest, in the order of the list; the first ones of equals, and none whose field is no finite
    number."""
    TAG = "tag"
    """``list of objects with Key and Value, key -> text``: the value of the tag, empty where there
    is none."""
    DIFFERENCE = "difference"
    """``list of objects with Key and Size, another -> text``: up to three objects that only one of
    the lists has, each as key and size."""
    REMOVE_PREFIX = "remove_prefix"
    """``text, prefix -> text``: an error where the text does not start with the prefix."""
    SAME_CONTENT = "same_content"
    """``object as HeadObject describes it, CopyObjectResult, encryption of the copy -> boolean``:
    false where the checksums that both have differ, or both ETags are MD5s and differ. Checksums of
    parts, and ETags of parts or under KMS, say nothing of the whole."""
    URL_PATH = "url_path"
    """``text -> text``: percent-encoded but for its slashes, as ``x-amz-copy-source`` wants it."""
    S3_BUCKET = "s3_bucket"
    """``"s3://bucket/key" -> "bucket"``."""
    S3_KEY = "s3_key"
    """``"s3://bucket/key" -> "key"``, empty where there is none."""
    ARN_NAME = "arn_name"
    """``text -> text``: all behind the last slash or colon."""
    TIME_TEXT = "time_text"
    """``time, seconds, format -> text``: the time so many seconds earlier, in UTC; an error where
    the text is no time. See :mod:`orchestration.refs.times`."""
    DIRECTORY = "directory"
    """``text -> text``: with a slash at its end, one added where there is none."""
    TEXT = "text"
    """``number, text or boolean -> text``, numbers as JavaScript writes them with 15 digits."""
    COLUMN = "column"
    """``list of objects, key -> list``: one field of each, a scalar or null."""
    LISTED = "listed"
    """``list of objects, key -> text``: one field of each, texts, with commas between them."""
    MISFITS = "misfits"
    """``list, key, names and types -> text``: the elements that are no objects with fields of these
    types, and two with the same key; empty where all is well."""
    FIRST_OF = "first_of"
    """``values -> value``: the first that is not null; an error where all are."""


@dataclass(frozen=True, slots=True)
class Result(Expression[object]):
    """An output of a step of the graph."""

    step: str
    output: str


@dataclass(frozen=True, slots=True)
class Item(Expression[object]):
    """The element that the enclosing ``ForEach`` is at."""


@dataclass(frozen=True, slots=True)
class Field(Expression[object]):
    """One field of an object."""

    of: Expression[object]
    key: str


@dataclass(frozen=True, slots=True)
class Compare(Expression[bool]):
    """Two scalars compared. Order is for numbers only; equality never mixes types."""

    op: Comparison
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class All(Expression[bool]):
    """True if all conditions hold, or if there are none."""

    conditions: tuple[Expression[bool], ...]


@dataclass(frozen=True, slots=True)
class Any(Expression[bool]):
    """True if any condition holds."""

    conditions: tuple[Expression[bool], ...]


@dataclass(frozen=True, slots=True)
class Not(Expression[bool]):
    """True if a condition does not hold."""

    condition: Expression[bool]


@dataclass(frozen=True, slots=True)
class Best(Expression[object]):
    """The object of a list whose field ``key`` is largest or smallest; the first one of equals."""

    items: Expression[object]
    key: str
    direction: Direction


@dataclass(frozen=True, slots=True)
class Apply(Expression[object]):
    """A function of :class:`Function` applied to arguments."""

    function: Function
    arguments: tuple[Tree, ...]


def apply(function: Function, *arguments: Tree) -> Expression[object]:
    """Apply a function to arguments."""
    return Apply(function, arguments)


def field(of: Tree, key: str) -> Tree:
    """One field of an object, at once where the object is already known."""
    if isinstance(of, Expression):
        return Field(of, key)
    if isinstance(of, Mapping) and key in of:
        return of[key]
    raise ExpressionError(f"{of!r} has no field {key!r}")


def children(node: Expression[object]) -> tuple[Tree, ...]:
    """The parts of a node, in order."""
    match node:
        case Result() | Parameter() | Run() | RunAttempt() | Item() | Each() | Ref() | RunOutcome():
            return ()
        case Join(parts) | FirstOf(parts):
            return parts
        case Field(of, _) | ArnName(of) | TimeText(of, _, _):
            return (of,)
        case Compare(_, left, right):
            return (left, right)
        case All(conditions) | Any(conditions):
            return conditions
        case Not(condition):
            return (condition,)
        case Best(items, _, _):
            return (items,)
        case Apply(_, arguments):
            return arguments
        case _:
            raise ExpressionError(
                f"expected a node of the expression language, got {type(node).__name__}"
            )


def walk(tree: Tree) -> Iterator[Expression[object]]:
    """Yield every expression in a tree, outermost first."""
    waiting: list[Tree] = [tree]
    while waiting:
        value = waiting.pop()
        # Most of a tree is plain values, and abstract classes are slow to ask.
        if isinstance(value, SCALARS):
            continue
        if isinstance(value, Expression):
            yield value
            waiting += reversed(children(value))
        elif isinstance(value, (dict, Mapping)):
            waiting += reversed(list(value.values()))
        elif isinstance(value, Sequence):
            waiting += reversed(value)


_Found = Callable[[Expression[object]], Tree]
_E = TypeVar("_E", bound=Tree)


def substitute(tree: Tree, replace: _Found) -> Tree:
    """A tree with leaf expressions replaced by what ``replace`` gives for them."""
    if isinstance(tree, SCALARS):
        return tree
    if isinstance(tree, Expression):
        return _substitute_node(tree, replace)
    if isinstance(tree, Mapping):
        return {key: substitute(value, replace) for key, value in tree.items()}
    if isinstance(tree, Sequence):
        return [substitute(value, replace) for value in tree]
    return tree


def _joined(part: Tree) -> str | Expression[object]:
    """Return the part of a join for a value that is known already."""
    return part if isinstance(part, Expression) else text(part)


def _substitute_node(  # noqa: C901 - one arm for each kind of node
    node: Expression[object], replace: _Found
) -> Tree:
    def expression(child: Tree) -> Expression[object]:
        new = substitute(child, replace)
        if not isinstance(new, Expression):
            raise ExpressionError(f"{new!r} stands where {type(node).__name__} needs an expression")
        return new

    match node:
        case Result() | Parameter() | Run() | RunAttempt() | Item() | Ref():
            return replace(node)
        case Join(parts):
            return join(*(_joined(substitute(part, replace)) for part in parts))
        case Field(of, key):
            return field(substitute(of, replace), key)
        case ArnName(of):
            return Apply(Function.ARN_NAME, (substitute(of, replace),))
        case TimeText(of, minus_s, format):
            return Apply(Function.TIME_TEXT, (substitute(of, replace), minus_s, format))
        case Compare(op, left, right):
            return Compare(op, substitute(left, replace), substitute(right, replace))
        case All(conditions):
            return All(tuple(cast("Expression[bool]", expression(c)) for c in conditions))
        case Any(conditions):
            return Any(tuple(cast("Expression[bool]", expression(c)) for c in conditions))
        case Not(condition):
            return Not(cast("Expression[bool]", expression(condition)))
        case Best(items, key, direction):
            return Best(expression(items), key, direction)
        case Apply(function, arguments):
            return Apply(function, tuple(substitute(a, replace) for a in arguments))
        case _:
            return replace(node)
