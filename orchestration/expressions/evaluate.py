"""Evaluation in Python: what Airflow runs, and what the JSONata is tested against."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, cast
from urllib.parse import quote

from typing_extensions import override

from orchestration.errors import ExpressionError, near
from orchestration.expressions.nodes import (
    SCALARS,
    All,
    Any,
    Apply,
    Best,
    Compare,
    Field,
    Function,
    Item,
    Json,
    Not,
    Result,
    Tree,
)
from orchestration.expressions.scalars import text
from orchestration.refs import Expression, Join, Parameter, Run, RunAttempt

_V = TypeVar("_V")
_MOST_NAMED: Final = 3


class Environment(Protocol):
    """The source of a run's values."""

    def result(self, step: str, output: str) -> Json:
        """The output of a step that has run."""

    def parameter(self, name: str) -> Json:
        """The value of a parameter of this run."""

    def run(self) -> str:
        """The run's identity, 12 hexadecimal digits."""

    def attempt(self) -> int:
        """The number of the attempt at the whole run, where attempts are numbered."""
        return 1

    def item(self) -> Json:
        """The element the enclosing loop is at."""


@dataclass(frozen=True, slots=True)
class Values(Environment):
    """An environment of plain values."""

    results: Mapping[str, Mapping[str, Json]]
    parameters: Mapping[str, Json]
    run_token: str = "0" * 12
    current: Json = None
    number: int = 1

    @override
    def result(self, step: str, output: str) -> Json:
        return _found(_found(self.results, step, "results of the step"), output, f"{step} output")

    @override
    def parameter(self, name: str) -> Json:
        return _found(self.parameters, name, "value of the parameter")

    @override
    def run(self) -> str:
        return self.run_token

    @override
    def attempt(self) -> int:
        return self.number

    @override
    def item(self) -> Json:
        return self.current


def _found(known: Mapping[str, _V], name: str, what: str) -> _V:
    if name not in known:
        raise ExpressionError(f"no {what} {name!r} is known{near(name, known)}")
    return known[name]


def evaluate(tree: Tree, environment: Environment) -> Json:
    """The JSON value of a tree in a run."""
    if isinstance(tree, Expression):
        return _node(tree, environment)
    if isinstance(tree, Mapping):
        return {key: evaluate(value, environment) for key, value in tree.items()}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [evaluate(value, environment) for value in tree]
    return tree


def run_token(identity: str) -> str:
    """The 12 hexadecimal digits that stand for a run's identity in names and paths."""
    return hashlib.sha256(identity.encode()).hexdigest()[:12]


def _node(  # noqa: C901 - one arm for each kind of node
    node: Expression[object], env: Environment
) -> Json:
    match node:
        case Result(step, output):
            return env.result(step, output)
        case Parameter(name):
            return env.parameter(name)
        case Run():
            return env.run()
        case RunAttempt():
            return env.run() if env.attempt() == 1 else f"{env.run()}-{env.attempt()}"
        case Item():
            return env.item()
        case Join(parts):
            return "".join(text(evaluate(part, env)) for part in parts)
        case Field(of, key):
            return _field(evaluate(of, env), key)
        case Compare(op, left, right):
            return _compare(op, evaluate(left, env), evaluate(right, env))
        case All(conditions):
            return all(_boolean(evaluate(c, env)) for c in conditions)
        case Any(conditions):
            return any(_boolean(evaluate(c, env)) for c in conditions)
        case Not(condition):
            return not _boolean(evaluate(condition, env))
        case Best(items, key, direction):
            return _best(evaluate(items, env), key, direction)
        case Apply(Function.FIRST_OF, arguments):
            return _first_of(arguments, env)
        case Apply(function, arguments):
            return _FUNCTIONS[function](*(evaluate(a, env) for a in arguments))
        case _:
            raise ExpressionError(f"{node!r} has no value while a run goes on")


def _field(value: Json, key: str) -> Json:
    if not isinstance(value, Mapping) or key not in value:
        raise ExpressionError(f"no field {key!r} in {value!r}")
    return value[key]


def _boolean(value: Json) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"expected true or false, got {value!r}")
    return value


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"expected a number, got {value!r}")
    return value


def _compare(op: str, left: Json, right: Json) -> bool:
    if op in ("eq", "ne"):
        same_kind = isinstance(left, bool) == isinstance(right, bool)
        equal = same_kind and left == right
        return equal if op == "eq" else not equal
    a, b = _number(left), _number(right)
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]


def _objects(value: Json) -> Sequence[Json]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ExpressionError(f"expected a list, got {value!r}")
    return value


def _best(items: Json, key: str, direction: str) -> Json:
    candidates = _objects(items)
    if not candidates:
        raise ExpressionError("there is no best of an empty list")
    choose = max if direction == "max" else min
    return choose(candidates, key=lambda item: _number(_field(item, key)))


def _hash(value: Json) -> str:
    return run_token(_text(value))


def _fingerprint(before: Json, items: Json) -> str:
    lines = [_text(before)]
    for item in _objects(items):
        size = text(_number(_field(item, "Size")))
        lines.append(f"{size} {_text(_field(item, 'ETag'))} {_text(_field(item, 'Key'))}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise ExpressionError(f"expected text, got {value!r}")
    return value


def _remove_prefix(value: Json, prefix: Json) -> str:
    whole, start = _text(value), _text(prefix)
    if not whole.startswith(start):
        raise ExpressionError(f"{whole!r} does not start with {start!r}")
    return whole[len(start) :]


def _difference(items: Json, others: Json) -> str:
    left, right = _sized(items), _sized(others)
    apart = [text for text in left if text not in set(right)]
    apart += [text for text in right if text not in set(left)]
    return ", ".join(apart[:_MOST_NAMED])


def _sized(items: Json) -> list[str]:
    return [
        f"{_text(_field(item, 'Key'))} {text(_number(_field(item, 'Size')))}"
        for item in _objects(items)
    ]


def _url_path(value: Json) -> str:
    return quote(_text(value), safe="/-_.!~*'()")


def _s3_parts(value: Json) -> tuple[str, str]:
    uri = _text(value)
    if not uri.startswith("s3://"):
        raise ExpressionError(f"expected an S3 URI (s3://bucket/key), got {uri!r}")
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def _sum(items: Json, key: Json) -> float:
    # Not sum(): from Python 3.12 on it compensates rounding, which JSONata does not.
    total: float = 0
    for item in _objects(items):
        total += _number(_field(item, _text(key)))
    return total


def _largest(items: Json, key: Json) -> float:
    return max([0, *(_number(_field(item, _text(key))) for item in _objects(items))])


def _count_files(items: Json) -> int:
    keys = [_text(_field(item, "Key")) for item in _objects(items)]
    return sum(not key.endswith("/") for key in keys)


def _tag(items: Json, key: Json) -> str:
    name = _text(key)
    for item in _objects(items):
        if isinstance(item, Mapping) and item.get("Key") == name:
            value = item.get("Value")
            if isinstance(value, str):
                return value
    return ""


def _numbered(items: Json, key: Json) -> list[Json]:
    name = _text(key)
    return [item for item in _objects(items) if _finite(item, name)]


def _finite(item: Json, key: str) -> bool:
    value = item.get(key) if isinstance(item, Mapping) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(cast(float, value))


def _where(items: Json, key: Json, op: Json, value: Json) -> list[Json]:
    name, comparison = _text(key), _text(op)
    if comparison not in ("eq", "ne"):
        _number(value)
    return [
        item
        for item in _objects(items)
        if isinstance(item, Mapping)
        and name in item
        and (comparison in ("eq", "ne") or _finite(item, name))
        and _compare(comparison, item[name], value)
    ]


def _column(items: Json, key: Json) -> list[Json]:
    values = [_field(item, _text(key)) for item in _objects(items)]
    for value in values:
        if not isinstance(value, SCALARS):
            raise ExpressionError(f"expected text, a number, true, false or null, got {value!r}")
    return values


def _first_of(values: Sequence[Tree], env: Environment) -> Json:
    """Evaluate no further than to the first value that is there."""
    for tree in values:
        value = evaluate(tree, env)
        if value is not None:
            return value
    raise ExpressionError("none of the values is there: all are null")


_FUNCTIONS: dict[Function, Callable[..., Json]] = {
    Function.HASH: _hash,
    Function.FINGERPRINT: _fingerprint,
    Function.CONTAINS: lambda whole, part: _text(part) in _text(whole),
    Function.COUNT: lambda items: len(_objects(items)),
    Function.COUNT_FILES: _count_files,
    Function.SUM: _sum,
    Function.LARGEST: _largest,
    Function.NUMBERED: _numbered,
    Function.WHERE: _where,
    Function.TAG: _tag,
    Function.DIFFERENCE: _difference,
    Function.REMOVE_PREFIX: _remove_prefix,
    Function.URL_PATH: _url_path,
    Function.DIRECTORY: lambda value: _text(value).removesuffix("/") + "/",
    Function.S3_BUCKET: lambda uri: _s3_parts(uri)[0],
    Function.S3_KEY: lambda uri: _s3_parts(uri)[1],
    Function.TEXT: cast("Callable[..., Json]", text),
    Function.COLUMN: _column,
}
