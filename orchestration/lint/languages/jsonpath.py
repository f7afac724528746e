"""Paths and intrinsic functions of JSONPath states.

https://docs.aws.amazon.com/step-functions/latest/dg/amazon-states-language-paths.html and
https://docs.aws.amazon.com/step-functions/latest/dg/intrinsic-functions.html (read November 2026).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from orchestration.errors import near

_MANY: Final = 10_000
_ARGUMENTS: Final = {
    "States.Array": (0, _MANY),
    "States.ArrayContains": (2, 2),
    "States.ArrayGetItem": (2, 2),
    "States.ArrayLength": (1, 1),
    "States.ArrayPartition": (2, 2),
    "States.ArrayRange": (3, 3),
    "States.ArrayUnique": (1, 1),
    "States.Base64Decode": (1, 1),
    "States.Base64Encode": (1, 1),
    "States.Format": (1, _MANY),
    "States.Hash": (2, 2),
    "States.JsonMerge": (3, 3),
    "States.JsonToString": (1, 1),
    "States.MathAdd": (2, 2),
    "States.MathRandom": (2, 3),
    "States.StringSplit": (2, 2),
    "States.StringToJson": (1, 1),
    "States.UUID": (0, 0),
}
_HASHES = ("MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512")
_DEEPEST: Final = 10
_NAME = r"[^\s.\[\](){}'\"@?,:]+"
_HEAD = re.compile(rf"\$\$|\$(?P<variable>{_NAME})?")
_STEP = re.compile(
    rf"\.\.?(?P<name>{_NAME})"
    r"|\.?\[\s*(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\s*\]"
    r"|\.?\.?\[\s*(?P<index>-?\d+)\s*\]"
    r"|(?P<many>\.?\.?\[(?:[^\[\]]|\[[^\[\]]*\])*\])"
    r"|(?P<function>\.(?:length|min|max|avg|sum|stddev|keys|concat|append|index)\(.*\))"
)
_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w.]*)\s*\(")
_TEXT = re.compile(r"\s*'(?P<text>(?:[^'\\]|\\.)*)'", re.DOTALL)
_SCALAR = re.compile(r"\s*(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?=\s*[,)])")
_PATH = re.compile(r"\s*(?P<path>\$(?:[^,()\[\]]|\[(?:'[^']*'|[^\]])*\])*)")


class SyntaxFault(ValueError):
    """A path or a call is not well formed."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path as it was read."""

    root: str
    """``$`` the data, ``$$`` the context object, else the name of a variable."""
    names: tuple[str, ...]
    """The fields, as far as they are names."""
    is_reference: bool
    """True if it can name one place only."""
    is_plain: bool = True
    """True if it consists of names only."""


@dataclass(slots=True)
class Call:
    """The reads and faults of a call of an intrinsic function."""

    paths: list[Path] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def path(text: str) -> Path:
    """Read a path; ``SyntaxFault`` where it is none."""
    text = text.rstrip()  # The service does not mind blanks at the end.
    head = _HEAD.match(text)
    if head is None:
        raise SyntaxFault(f"expected a path, which begins with $, got {text!r}")
    position, names, is_plain, is_reference = head.end(), list[str](), True, True
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise SyntaxFault(
                f"{text[position:]!r} in {text!r} is none of .name, ['name'], [0], [*], [?(…)]"
            )
        name = step["name"] if step["quoted"] is None else step["quoted"][1:-1]
        is_single = (name not in (None, "*") or step["index"] is not None) and not step[
            0
        ].startswith("..")
        is_reference = is_reference and is_single
        is_plain = is_plain and name is not None and is_single
        if is_plain and name is not None:
            names.append(name)
        position = step.end()
    root = "$$" if head[0] == "$$" else head["variable"] or "$"
    return Path(root, tuple(names), is_reference, is_plain)


def is_call(text: str) -> bool:
    """Return whether a text looks like a call of a function."""
    return not text.lstrip().startswith("$") and _CALL.match(text) is not None


def call(text: str) -> Call:
    """Read a call of an intrinsic function; ``SyntaxFault`` where its syntax is wrong."""
    read = Call()
    end = _call(text, 0, read, 1)
    if text[end:].strip():
        raise SyntaxFault(f"{text[end:].strip()!r} follows the end of the call")
    return read


def _call(text: str, position: int, read: Call, depth: int) -> int:
    head = _CALL.match(text, position)
    if head is None:
        raise SyntaxFault(f"expected a call such as States.Format('{{}}', $.a), got {text!r}")
    name, position, arguments = head["name"], head.end(), list[str | None]()
    if depth > _DEEPEST:
        read.faults.append(f"calls are nested deeper than {_DEEPEST}")
    while not text[position:].lstrip().startswith(")"):
        if arguments:
            if not text[position:].lstrip().startswith(","):
                raise SyntaxFault(f"expected , or ) at {text[position:].lstrip()[:20]!r}")
            position = text.index(",", position) + 1
        position, literal = _argument(text, position, read, depth)
        arguments.append(literal)
    _check(name, arguments, read)
    return text.index(")", position) + 1


def _argument(text: str, position: int, read: Call, depth: int) -> tuple[int, str | None]:
    literal = _TEXT.match(text, position)
    if literal is not None:
        return literal.end(), literal["text"]
    scalar = _SCALAR.match(text, position)
    if scalar is not None:
        return scalar.end(), scalar[0].strip()
    place = _PATH.match(text, position)
    if place is not None:
        read.paths.append(path(place["path"].strip()))
        return place.end(), None
    if _CALL.match(text, position) is not None:
        return _call(text, position, read, depth + 1), None
    rest = text[position:].strip()
    raise SyntaxFault(f"expected a path, a text in single quotes or a number, got {rest[:30]!r}")


def _check(name: str, arguments: list[str | None], read: Call) -> None:
    if name not in _ARGUMENTS:
        read.faults.append(f"there is no intrinsic function {name}{near(name, _ARGUMENTS)}")
        return
    least, most = _ARGUMENTS[name]
    count = len(arguments)
    if not least <= count <= most:
        takes = str(least) if least == most else f"{least} or more"
        read.faults.append(f"{name} takes {takes} arguments, not {count}")
        return
    template = arguments[0] if arguments else None
    if name == "States.Format" and template is not None:
        holes = len(re.findall(r"(?<!\\)\{\}", template))
        if holes != count - 1:
            read.faults.append(f"its text has {holes} places {{}} and {count - 1} values for them")
    if name == "States.JsonMerge" and arguments[2] == "true":
        read.faults.append("States.JsonMerge merges the topmost level only: its last is false")
    algorithm = arguments[1] if name == "States.Hash" else None
    if algorithm is not None and algorithm not in _HASHES:
        read.faults.append(f"{algorithm!r} is unknown to States.Hash{near(algorithm, _HASHES)}")
