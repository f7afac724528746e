"""Evaluation in Python: what Airflow runs, and what the JSONata is tested against."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from typing_extensions import override

from orchestration.errors import ExpressionError, near
from orchestration.expressions.functions import (
    FUNCTIONS,
    best,
    boolean,
    compare,
    field_of,
    plain_text,
)
from orchestration.expressions.nodes import (
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
            return field_of(evaluate(of, env), key)
        case Compare(op, left, right):
            return compare(op, evaluate(left, env), evaluate(right, env))
        case All(conditions):
            return all(boolean(evaluate(c, env)) for c in conditions)
        case Any(conditions):
            return any(boolean(evaluate(c, env)) for c in conditions)
        case Not(condition):
            return not boolean(evaluate(condition, env))
        case Best(items, key, direction):
            return best(evaluate(items, env), key, direction)
        case Apply(Function.HASH, (argument,)):
            return run_token(plain_text(evaluate(argument, env)))
        case Apply(Function.FIRST_OF, arguments):
            return _first_of(arguments, env)
        case Apply(function, arguments):
            return _applied(function, arguments, env)
        case _:
            raise ExpressionError(f"{node!r} has no value while a run goes on")


def _applied(function: Function, arguments: Sequence[Tree], env: Environment) -> Json:
    """Apply a function; an error names the parameter that the function was given."""
    values = [evaluate(argument, env) for argument in arguments]
    try:
        return FUNCTIONS[function](*values)
    except ExpressionError as error:
        names = [argument.name for argument in arguments if isinstance(argument, Parameter)]
        if not names:
            raise
        raise ExpressionError(f"parameter {names[0]}: {error}") from error


def _first_of(values: Sequence[Tree], env: Environment) -> Json:
    """Evaluate no further than to the first value that is there."""
    for tree in values:
        value = evaluate(tree, env)
        if value is not None:
            return value
    raise ExpressionError("none of the values is there: all are null")
