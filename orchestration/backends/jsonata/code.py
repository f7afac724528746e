"""Pieces of JSONata, and what is known of their values."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from orchestration.backends.jsonata.writing import checked, quote

Kind: TypeAlias = Literal["string", "number", "boolean", "array", "object", "any"]
"""What is known of a value before the run; the names are those of JSONata's ``$type``."""

_SCALARS = ("string", "number", "boolean")


class Code(NamedTuple):
    """A piece of JSONata."""

    text: str
    kind: Kind = "any"
    label: str = "a value"
    """What a person calls it."""
    atomic: bool = True
    """Whether it can be an operand without parentheses."""
    present: bool = True
    """Whether it is sure to have a value. One without vanishes from a text and equals no number."""

    @property
    def operand(self) -> str:
        """The text as a part of a larger expression."""
        return self.text if self.atomic else f"({self.text})"


def sure(code: Code, kind: Kind) -> Code:
    """A value of a kind, or an error."""
    if code.kind == kind:
        return present(code)
    message = f"{code.label} is no {kind}"
    text = checked(code.text, f"$type($v) = '{kind}'", "$v", message)
    return Code(text, kind, code.label)


def scalar(code: Code) -> Code:
    """A text, a number, a boolean or null, or an error."""
    if code.kind in _SCALARS:
        return present(code)
    test = "$type($v) in ['string', 'number', 'boolean', 'null']"
    message = f"{code.label} is no text, number or boolean"
    return Code(checked(code.text, test, "$v", message), label=code.label)


def present(code: Code) -> Code:
    """A value, or an error."""
    if code.present:
        return code
    text = checked(code.text, "$exists($v)", "$v", f"there is no {code.label}")
    return Code(text, code.kind, code.label)


def let(bindings: dict[str, str], result: str) -> str:
    """A result that speaks of parts by names."""
    named = "".join(f"${name} := {text}; " for name, text in bindings.items())
    return f"({named}{result})"


def refused(message: str) -> str:
    """JSONata that fails with a message."""
    return f"$error({quote(message)})"
