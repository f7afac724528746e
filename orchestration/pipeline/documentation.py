"""The docstrings under the fields of models.

Pydantic can read them when a class is made, which takes as long as all else that importing the
models takes. They are wanted for schemas and for messages, so they are read when they are wanted.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import BaseModel


@cache
def documented(model: type[BaseModel]) -> Mapping[str, str]:
    """The docstring under each field of a model, those of its parents included."""
    found: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if issubclass(parent, BaseModel) and parent is not BaseModel:
            found.update(_under_fields(parent))
    return found


def _under_fields(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for field, following in itertools.pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(following.value.value)
