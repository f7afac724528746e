"""Pieces of JSONata, and what is known of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from orchestration.backends.jsonata.writing import checked
from orchestration.expressions import Tree

Kind: TypeAlias = Literal["string", "number", "boolean", "array", "object", "any"]
"""The type of a value as far as it is known before the run, in the names of JSONata's ``$type``."""
Demand: TypeAlias = Literal["string", "number", "boolean", "array", "object", "scalar", "value"]
"""The type that an expression requires of a part: a kind, any scalar, or any value at all."""

SCALARS: Final = ("string", "number", "boolean")
OPERATORS: Final = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""The operators of comparisons, by their names in expressions."""
_ARTICLES: Final[Mapping[str, str]] = {"array": "an array", "object": "an object"}


class Code(NamedTuple):
    """A piece of JSONata."""

    text: str
    kind: Kind = "any"
    label: str = "a value"
    """Its name for people."""
    atomic: bool = True
    """True if it can be an operand without parentheses."""
    present: bool = True
    """True if it is sure to have a value. One without vanishes from a text and equals no number."""
    fields: Mapping[str, Kind] | None = None
    """Of an object, or of each object in a list: the fields that it is sure to have. ``None``: not
    sure to be an object, or a list of objects."""

    @property
    def operand(self) -> str:
        """The text as a part of a larger expression."""
        return self.text if self.atomic else f"({self.text})"

    @property
    def sure(self) -> bool:
        """True if its evaluation cannot fail."""
        return self.present and "$error(" not in self.text


def demanded(code: Code, demand: Demand) -> Code:
    """Return a value that is what is asked for, or an error."""
    if demand == "value":
        return present(code)
    return scalar(code) if demand == "scalar" else sure(code, demand)


def sure(code: Code, kind: Kind) -> Code:
    """Return a value of a kind, or an error."""
    if code.kind == kind:
        return present(code)
    message = f"{code.label} is not {_ARTICLES.get(kind, f'a {kind}')}"
    text = checked(code.text, f"$type($v) = '{kind}'", "$v", message)
    return Code(text, kind, code.label)


def scalar(code: Code) -> Code:
    """Return a text, a number, a boolean or null, or an error."""
    if code.kind in SCALARS:
        return present(code)
    test = "$type($v) in ['string', 'number', 'boolean', 'null']"
    message = f"{code.label} is not a text, number or boolean"
    return Code(checked(code.text, test, "$v", message), label=code.label)


def present(code: Code) -> Code:
    """Return a value, or an error."""
    if code.present:
        return code
    text = checked(code.text, "$exists($v)", "$v", f"{code.label} is missing")
    return code._replace(text=text, present=True, atomic=True)


def let(bindings: dict[str, str], result: str) -> str:
    """Return a result that speaks of parts by names."""
    named = "".join(f"${name} := {text}; " for name, text in bindings.items())
    return f"({named}{result})"


class Writer(Protocol):
    """Writes the arguments of functions."""

    def code(self, tree: Tree) -> Code:
        """Write a tree."""

    def asked(self, tree: Tree, demand: Demand) -> Code:
        """Write a tree that must be what is asked for."""

    def harmless(self, tree: Tree) -> bool:
        """Return whether leaving a tree out of a text leaves no error out."""
