r"""AWS's patterns, which are written in Java's dialect, for Python.

``re`` knows no categories of Unicode (``\p{L}``), so this needs the ``regex`` package. Its second
version of syntax nests and intersects sets as Java does; what is left to translate is what Java
means by ``\d``, ``\w``, ``\s``, ``.`` and POSIX's classes: ASCII, where Python means Unicode.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import regex

NOT_CHECKED: Final = {
    r"^(\p{LD}|\p{Punct}| )+$": "Java has no class LD either",
    r"^arn:\S+:rbin:[a-z\-0-9]{0,63}:[0-9]{12}:rule/[0-9a-zA-Z]{11}{0,1011}$": (
        "two quantifiers in a row, which Java refuses"
    ),
}
"""The patterns that mean nothing, with the reasons; any value matches them."""

_SPACE: Final = r" \t\n\x0B\f\r"
_WORD: Final = "a-zA-Z0-9_"
_LINE_ENDS: Final = r"\n\r\x85\u2028\u2029"
_ESCAPES: Final = {"d": "0-9", "w": _WORD, "s": _SPACE}
_CLASSES: Final = {
    "ASCII": r"\x00-\x7F",
    "Alnum": "a-zA-Z0-9",
    "Alpha": "a-zA-Z",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "Digit": "0-9",
    "Graph": r"\x21-\x7E",
    "Lower": "a-z",
    "Print": r"\x20-\x7E",
    "Punct": r"!-/:-@\[-`\{-~",
    "Space": _SPACE,
    "Upper": "A-Z",
    "XDigit": "0-9A-Fa-f",
    "all": r"\x00-\U0010FFFF",
}
"""The classes as Java has them; any other is a property of Unicode, as ``regex`` has it."""
_SURROGATES: Final = (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
"""Characters beyond 16 bits, as Java writes them and as Python does."""
_PART: Final = (
    r"\\(?P<sign>[pP])\{(?P<name>\w+)\}"
    r"|\\x\{(?P<code>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escape>.)"
    r"|(?P<open>\[\^?)"
    r"|(?P<close>\])"
    r"|(?P<operator>--|~~|\|\|)"
    r"|(?P<dot>\.)"
    r"|."
)


def matches(pattern: str, value: str) -> bool:
    """Return whether a whole text matches a pattern; AWS compares nothing less."""
    compiled = _compiled(pattern)
    return compiled is None or compiled.fullmatch(value) is not None


def translated(java: str) -> str:
    r"""Return a pattern as ``regex`` reads it, in its second version of syntax.

    >>> translated(r"[^\w.]*")
    '[^[a-zA-Z0-9_].]*'
    """
    return "".join(_pieces(java.replace(*_SURROGATES)))


@lru_cache(maxsize=512)
def _compiled(java: str) -> regex.Pattern[str] | None:
    if java in NOT_CHECKED:
        return None
    # Imported on use: the parser of DAG files checks no request.
    import regex

    try:
        return regex.compile(translated(java), regex.V1)
    except regex.error:
        return None


def _pieces(java: str) -> Iterator[str]:
    import regex

    depth = 0
    dot_is_anything = "(?s" in java
    for token in regex.finditer(_PART, java, regex.DOTALL):
        groups = token.groupdict()
        depth += (groups["open"] is not None) - (groups["close"] is not None and depth > 0)
        if groups["name"]:
            yield _class(groups["name"], negated=groups["sign"] == "P")
        elif groups["code"]:
            yield rf"\U{int(groups['code'], 16):08X}"
        elif groups["escape"]:
            yield _escaped(groups["escape"])
        elif groups["operator"] and depth:
            # Operators on sets in Python, and plain characters in Java.
            yield "".join(f"\\{character}" for character in groups["operator"])
        elif groups["dot"] and not depth and not dot_is_anything:
            yield f"[^{_LINE_ENDS}]"
        else:
            yield token[0]


def _class(name: str, *, negated: bool) -> str:
    if name in _CLASSES:
        return _set(_CLASSES[name], negated=negated)
    return rf"\{'P' if negated else 'p'}{{{name.removeprefix('Is')}}}"


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character.lower())
    if known is not None:
        return _set(known, negated=character.isupper())
    if character == "z":
        return r"\Z"
    return f"\\{character}"


def _set(characters: str, *, negated: bool) -> str:
    # Within another set too: what follows it there, as in [\w-.], is no range.
    return f"[{'^' if negated else ''}{characters}]"
