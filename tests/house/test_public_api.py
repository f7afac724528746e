"""The public names are a list that people read."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
from functools import cache, cached_property
from itertools import pairwise

import pytest
from pydantic import BaseModel

import orchestration


def _rank(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order that ruff keeps (RUF022)."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_public_names_are_sorted_and_said_once() -> None:
    names = list(orchestration.__all__)
    assert names == sorted(set(names), key=_rank)


def test_every_listed_name_exists() -> None:
    assert [name for name in orchestration.__all__ if not hasattr(orchestration, name)] == []


def test_every_name_in_sight_is_listed() -> None:
    visible = {
        name
        for name, value in vars(orchestration).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert visible - set(orchestration.__all__) - {"annotations", "TYPE_CHECKING"} == set()


def _documented_names() -> list[str]:
    return [
        name
        for name in orchestration.__all__
        if inspect.isclass(getattr(orchestration, name, None))
        or inspect.isfunction(getattr(orchestration, name, None))
    ]


@pytest.mark.parametrize("name", _documented_names())
def test_docstring_begins_with_one_sentence(name: str) -> None:
    text = inspect.cleandoc(getattr(orchestration, name).__doc__ or "")
    first, _, _ = text.partition("\n\n")
    # A dataclass without one is given its own signature.
    assert not first.startswith(f"{name}(")
    assert first.endswith((".", "?", ":"))


@pytest.mark.parametrize("name", _documented_names())
def test_public_methods_have_docstrings(name: str) -> None:
    thing = getattr(orchestration, name)
    if not inspect.isclass(thing):
        return
    bare = [
        method
        for method, value in vars(thing).items()
        if inspect.isfunction(value)
        and not method.startswith("_")
        and value.__module__.startswith("orchestration")
        and not inspect.getdoc(getattr(thing, method))
    ]
    assert bare == []


@cache
def _told_below(kind: type) -> frozenset[str]:
    """Return the fields of a class that have a docstring below them."""
    if not kind.__module__.startswith("orchestration"):
        return frozenset()
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found = set()
    for pair in pairwise(tree.body):
        match pair:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str())):
                found.add(name)
    return frozenset(found)


def _fields(kind: type) -> list[str]:
    """Return the public fields of a class, but for the kind, which says its own name."""
    if issubclass(kind, BaseModel):
        names = list(kind.model_fields)
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        names = []
    return [name for name in names if not name.startswith("_") and name != "kind"]


@pytest.mark.parametrize("name", _documented_names())
def test_public_fields_and_properties_are_documented(name: str) -> None:
    kind = getattr(orchestration, name)
    if not inspect.isclass(kind):
        return
    told = frozenset().union(*map(_told_below, kind.__mro__))
    bare = [field for field in _fields(kind) if field not in told]
    bare += [
        each
        for each, value in vars(kind).items()
        if isinstance(value, property | cached_property | classmethod | staticmethod)
        and not each.startswith("_")
        and not inspect.getdoc(value)
    ]
    assert bare == []
