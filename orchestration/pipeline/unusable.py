"""Values that no request, no environment and no path can hold, wherever a user wrote them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from orchestration.errors import Problem
from orchestration.expressions.conditions import written_condition
from orchestration.pipeline.afterwards.sections import SECTIONS
from orchestration.refs import Expression
from orchestration.stages import Stage

MOST_DIGITS: Final = 300
"""Digits of a whole number: JSON's readers take the larger ones for infinite."""
_LONGEST_PATH: Final = 4096
_LONGEST_NAME: Final = 255
_NOT_WRITTEN: Final = (
    "only renderers compute; write parameter(…), join(…), first_of(…) or an output of a stage"
)
_CHARACTERS: Final = re.compile("[\0\ud800-\udfff]")


def unusable(data: Mapping[str, Any]) -> list[Problem]:
    """List the texts and numbers anywhere in a description that nothing can take."""
    top = {key: value for key, value in data.items() if key not in SECTIONS}
    found = [Problem(path, message) for path, message in _walk(top, "")]
    for section in SECTIONS:
        for name, stage in _pairs(data.get(section)):
            wrong = (f"the name of a stage {message}" for _, message in _text(str(name), ""))
            found += [Problem(section, message) for message in wrong]
            shown = ascii(str(name))[1:-1]
            found += [
                Problem(path, message, stage=shown, section=section)
                for path, message in _walk(stage, "")
            ]
    return found


def of_path(text: str) -> str | None:
    """Return why a text can't be a path on this machine; ``None`` where it can."""
    if len(text) > _LONGEST_PATH:
        return f"is a path of {len(text)} characters; the most is {_LONGEST_PATH}"
    if any(len(part) > _LONGEST_NAME for part in Path(text).parts):
        return f"holds a name of more than {_LONGEST_NAME} characters"
    return next((message for _, message in _text(text, "")), None)


def _pairs(stages: object) -> Iterator[tuple[object, object]]:
    if isinstance(stages, Mapping):
        yield from stages.items()
    elif isinstance(stages, list | tuple):
        yield from ((_name(stage, index), stage) for index, stage in enumerate(stages))


def _name(stage: object, index: int) -> object:
    name = stage.get("name") if isinstance(stage, Mapping) else getattr(stage, "name", None)
    return name if isinstance(name, str) else f"[{index}]"


def _walk(value: object, path: str) -> Iterator[tuple[str, str]]:
    dot = f"{path}." if path else ""
    match value:
        case str():
            yield from _text(value, path)
        case int():
            yield from _number(value, path)
        case Mapping():
            for key, item in value.items():
                yield from _keyed(key, item, dot)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _walk(item, f"{path}[{index}]")
        case Expression():
            yield from _expression(value, path)
        case BaseModel():
            yield from _model(value, path, dot)


def _expression(value: Expression[object], path: str) -> Iterator[tuple[str, str]]:
    try:
        written = written_condition(value)
    except ValueError:
        yield path, f"is {type(value).__name__}(…), which {_NOT_WRITTEN}"
    else:
        yield from _walk(written, path)


def _model(value: BaseModel, path: str, dot: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Stage) and path:
        outputs = ", ".join(type(value).outputs.of(value))
        yield path, f"is the stage {value.name!r}; refer to one of its outputs: {outputs}"
        return
    for name in type(value).model_fields:
        yield from _walk(getattr(value, name), f"{dot}{name}")


def _keyed(key: object, item: object, dot: str) -> Iterator[tuple[str, str]]:
    if isinstance(key, str):
        shown = ascii(key)[1:-1]
        for _, message in _text(key, ""):
            yield f"{dot}{shown}", f"the key {message}"
    else:
        shown = "(number)" if isinstance(key, int) and _is_large(key) else str(key)
    yield from _walk(item, f"{dot}{shown}")


def _text(value: str, path: str) -> Iterator[tuple[str, str]]:
    match = _CHARACTERS.search(value)
    if match is not None:
        code, place = ord(match[0]), match.start() + 1
        why = "half of a character" if code else "the end of a text for programs"
        yield path, f"has U+{code:04X} ({why}) as character {place}; remove it"


def _number(value: int, path: str) -> Iterator[tuple[str, str]]:
    if _is_large(value):
        yield path, f"is a number of more than {MOST_DIGITS} digits; write a smaller one"


def _is_large(value: int) -> bool:
    # Python refuses to write the largest ones down, so that digits can't be counted.
    return value.bit_length() * math.log10(2) > MOST_DIGITS
