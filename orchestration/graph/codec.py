"""Steps as JSON and back, for the arguments of Airflow operators and triggers.

A dataclass becomes an object with one key, ``{"$Wait": {field: value}}``, without the fields that
have their default; expressions are written as :mod:`orchestration.expressions.codec` does. Only the
kinds listed here can be named, and a user's own mapping that looks like one is wrapped, so
everything comes back as it went in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Final, cast

from orchestration.expressions import SCALARS, Json
from orchestration.expressions import codec as expressions
from orchestration.graph.calls import (
    Adopt,
    Alternative,
    ErrorPattern,
    Failure,
    Fallback,
    First,
    Fold,
    Operation,
    Output,
    Pages,
    Person,
    Recovery,
    Retry,
    Until,
)
from orchestration.graph.steps import (
    Call,
    Choose,
    Concluded,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Kept,
    Parallel,
    Read,
    Require,
    Wait,
)
from orchestration.graph.timing import Clock, Within
from orchestration.refs import Expression

_KINDS: Final[Mapping[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        Adopt,
        Alternative,
        Call,
        Choose,
        Clock,
        Concluded,
        ErrorPattern,
        Fail,
        Failure,
        Fallback,
        First,
        Fold,
        ForEach,
        Graph,
        Guarded,
        Kept,
        Operation,
        Output,
        Pages,
        Parallel,
        Person,
        Read,
        Recovery,
        Require,
        Retry,
        Until,
        Wait,
        Within,
    )
}

_DEFAULTS: Final[Mapping[str, tuple[tuple[str, Any], ...]]] = {
    name: tuple(
        (f.name, f.default if f.default_factory is MISSING else f.default_factory())
        for f in fields(kind)
    )
    for name, kind in _KINDS.items()
}
"""The fields of each kind, with their defaults to compare with."""


def encode(value: Any) -> Json:
    """Return a step, a part of one, or a tree as JSON."""
    if isinstance(value, SCALARS):
        return value
    if isinstance(value, Expression):
        return expressions.encode(value)
    kind = type(value).__name__
    if _KINDS.get(kind) is type(value):
        content = {
            name: encode(part)
            for name, default in _DEFAULTS[kind]
            if (part := getattr(value, name)) != default
        }
        return expressions.node(kind, content)
    if isinstance(value, Mapping):
        return expressions.wrapped({key: encode(item) for key, item in value.items()})
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [encode(item) for item in value]
    return cast(Json, value)


def decode(document: Json) -> Any:
    """Return what :func:`encode` was given; lists that are fields come back as tuples."""
    if isinstance(document, Mapping):
        node = expressions.opened(document)
        if node is None:
            return {key: decode(item) for key, item in document.items()}
        kind, content = node
        if kind not in _KINDS:
            return expressions.decode_with(kind, content, decode)
        values = {key: decode(item) for key, item in cast("Mapping[str, Json]", content).items()}
        made = _KINDS[kind]
        return made(**{f.name: _typed(f, values[f.name]) for f in fields(made) if f.name in values})
    if isinstance(document, Sequence) and not isinstance(document, str):
        return [decode(item) for item in document]
    return document


def unknown(document: Json) -> Iterator[str]:
    """Yield what a document names that is neither a step kind nor an expression; builds nothing.

    ``document`` is as ``json.loads`` returns it. Each parse of a DAG file comes by here, so the
    types are asked for by themselves and not by their abstract classes, which is slow.
    """
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            node = expressions.opened(value) if len(value) == 1 else None
            match node:
                case None:
                    waiting += value.values()
                case ["literal", dict() as literal]:
                    waiting += literal.values()
                case [kind, dict() as content] if kind in _KINDS:
                    waiting += content.values()
                case [kind, content] if expressions.is_kind(kind):
                    waiting.append(content)
                case _:
                    yield f"step or expression {json.dumps(value):.80}"


def _typed(field: Field[Any], value: Any) -> Any:
    if str(field.type).startswith("frozenset"):
        return frozenset(value)
    return tuple(value) if isinstance(value, list) else value
