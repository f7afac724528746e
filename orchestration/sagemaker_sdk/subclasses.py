"""Users' own classes of estimators and trainers: what they replace, and what only they know."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Collection, Iterator
from types import CodeType
from typing import Any

from orchestration.sagemaker_sdk.findings import Findings

_REPLACES = (
    "replaces the SDK's own and can change what the SDK sends, which is not read here; set what it "
    "adds on an object of the SDK's own class"
)
UNKNOWN = "this attribute is unknown here and may change the request; set it to None"


def is_set(value: object) -> bool:
    """Return whether an attribute has a value that may shape a request."""
    return not (isinstance(value, bool | int | list | dict | tuple | None) and not value)


def described(value: object) -> str:
    """Return what a value is, for a message that refuses it."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def refuse_replaced(subject: Any, harmless: Collection[str], findings: Findings) -> set[str]:
    """Report what a user's class or object replaces of the SDK's, but for ``harmless`` names.

    Returns the names of the object's own.
    """
    kinds = type(subject).__mro__
    sdk = {name for kind in kinds if _is_sdk(kind) for name in vars(kind)} - set(harmless)
    for kind in filter(_is_users, kinds):
        for name in sorted(vars(kind).keys() & sdk):
            # Pydantic gives names of its own to each class of a model.
            if not name.startswith(("__", "model_", "_abc_")):
                called = "()" if callable(vars(kind)[name]) else ""
                findings.add("", f"{kind.__name__}.{name}{called} {_REPLACES}")
    own = {name for name in vars(subject).keys() & sdk if callable(getattr(type(subject), name))}
    for name in sorted(own):
        findings.add(name, f"a function of this object {_REPLACES}")
    return own


def own_attributes(kind: type) -> set[str]:
    """Return the attributes that only a user's class knows, so that they change no request."""
    mine = {name for each in kind.__mro__ if _is_users(each) for name in _names(each)}
    return mine - {name for each in kind.__mro__ if _is_sdk(each) for name in _names(each)}


def _is_sdk(kind: type) -> bool:
    return _package(kind) == "sagemaker"


def _is_users(kind: type) -> bool:
    # A class made by type() says that it is of the module abc.
    return kind not in (object, ABC) and _package(kind) not in ("sagemaker", "pydantic", "typing")


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _names(kind: type) -> Iterator[str]:
    """Yield the names that a class has, and those that its functions mention."""
    yield from vars(kind).get("__annotations__", ())
    for name, member in vars(kind).items():
        yield name
        for function in (getattr(member, "fget", member), getattr(member, "fset", member)):
            code = getattr(inspect.unwrap(function), "__code__", None)
            if code is not None:
                yield from _mentioned(code)


def _mentioned(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _mentioned(constant)
