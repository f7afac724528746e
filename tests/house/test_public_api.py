"""The public names are a list that people read."""

from __future__ import annotations

import inspect
import types

import pytest

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
