"""Texts that are evaluated: where they stand, and in which language they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from orchestration.lint.findings import Finding
from orchestration.lint.languages.jsonpath import is_call
from orchestration.lint.machines import State, pointer
from orchestration.lint.values import PLACEHOLDER, is_expression, is_placeholder

Data = Literal["input", "result", "errorOutput", "context"]

_TEMPLATES: Final = (
    *("Parameters", "ResultSelector", "ItemSelector", "Assign", "Credentials"),
    *("ItemReader", "ItemBatcher", "ResultWriter"),
)
_PATHS: Final = (
    *("InputPath", "OutputPath", "ResultPath", "ItemsPath", "TimeoutSecondsPath"),
    *("HeartbeatSecondsPath", "SecondsPath", "TimestampPath", "MaxConcurrencyPath"),
    *("ToleratedFailureCountPath", "ToleratedFailurePercentagePath", "ErrorPath", "CausePath"),
)
_PLAIN: Final = frozenset({"Type", "Comment", "QueryLanguage", "Next", "Default", "Resource"})
_NESTED: Final = frozenset({"Branches", "ItemProcessor", "Iterator", "Retry", "Catch", "Choices"})

_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")

_HERE: Final[frozenset[Data]] = frozenset({"input", "context"})
_AFTER: Final[frozenset[Data]] = _HERE | {"result"}
_IN_CATCH: Final[frozenset[Data]] = _HERE | {"errorOutput"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is evaluated when a state runs."""

    text: str
    path: str
    state: State
    field: str
    """The field of the state that it stands in."""
    data: frozenset[Data]
    """The data that it may read."""
    is_path: bool = False
    """True for a field that takes a path alone."""
    is_whole: bool = False
    """True if it is the whole value of a field of the state, or of a rule of it."""


def texts(state: State) -> Iterator[Text | Finding]:
    """Yield the texts of a state that are evaluated, and those that only look so."""
    for name, value in state.fields.items():
        if name in _NESTED or name in _PLAIN:
            continue
        data = _data(state, str(name))
        path = f"{state.path}/{name}"
        yield from _field(state, str(name), value, path, data)
    for key in ("Catch", "Choices"):
        data = _IN_CATCH if key == "Catch" else _HERE
        for path, entry in state.objects(key):
            for name, value in entry.items():
                if name in ("ErrorEquals", "Next", "Comment"):
                    continue
                where = f"{path}/{name}"
                yield from _entry(state, str(name), value, where, data)


def _data(state: State, name: str) -> frozenset[Data]:
    ends = state.type in ("Task", "Parallel", "Map") and name in ("Output", "Assign")
    return _AFTER if ends else _HERE


def _entry(
    state: State, name: str, value: Any, path: str, data: frozenset[Data]
) -> Iterator[Text | Finding]:
    if state.language == "JSONPath" and name not in ("Assign", "ResultPath"):
        yield from _comparison(state, name, value, path, data)
    else:
        yield from _field(state, name, value, path, data)


def _comparison(
    state: State, name: str, value: Any, path: str, data: frozenset[Data]
) -> Iterator[Text | Finding]:
    """Yield the paths in a rule of a Choice state."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _comparison(state, name, each, f"{path}/{index}", data)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _comparison(state, str(key), each, f"{path}/{key}", data)
    elif name.endswith(("Variable", "Path")) and isinstance(value, str):
        yield from _whole(value, path, state, name, data)


def _whole(value: str, path: str, state: State, name: str, data: frozenset[Data]) -> Iterator[Text]:
    if not is_placeholder(value):
        yield Text(value, path, state, name, data, is_path=True)


def _field(
    state: State, name: str, value: Any, path: str, data: frozenset[Data]
) -> Iterator[Text | Finding]:
    if state.language == "JSONata":
        yield from _jsonata(state, name, value, path, data)
    elif name in _PATHS:
        if isinstance(value, str):
            yield from _whole(value, path, state, name, data)
    elif name in _TEMPLATES:
        yield from _jsonpath(state, name, value, path, data)


def _jsonata(
    state: State, name: str, value: Any, path: str, data: frozenset[Data]
) -> Iterator[Text | Finding]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            where = f"{path}/{pointer(str(key))}"
            if isinstance(key, str) and key.endswith(".$"):
                text = "is sent with its .$, which is of JSONPath; write {% … %} as its value"
                yield Finding("literal-path", where, text)
            else:
                yield from _jsonata(state, name, each, where, data)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _jsonata(state, name, each, f"{path}/{index}", data)
    elif is_expression(value):
        yield Text(value, path, state, name, data, is_whole=path.endswith(f"/{name}"))
    elif isinstance(value, str):
        yield from _literal(value, path)


def _literal(value: str, path: str) -> Iterator[Finding]:
    if "{%" in value and "%}" in value:
        text = "is taken as it is written; an expression is a whole text: '{% … %}'"
        yield Finding("literal-path", path, text)
    elif value.startswith("{%"):
        yield Finding("jsonata-syntax", path, "begins with {% and does not end with %}")
    elif value.startswith(("$states.", "$.", "$$.")):
        yield Finding("literal-path", path, f"is taken as it is written; write {{% {value} %}}")


def _jsonpath(
    state: State, name: str, value: Any, path: str, data: frozenset[Data]
) -> Iterator[Text | Finding]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            where = f"{path}/{pointer(str(key))}"
            if f"{key}.$" in value:
                text = f"{key} and {key}.$ stand side by side; remove one"
                yield Finding("given-twice", where, text)
            if str(key).endswith(".$"):
                yield from _evaluated(each, Text(str(each), where, state, name, data))
            elif str(key) != "Resource":
                yield from _jsonpath(state, name, each, where, data)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _jsonpath(state, name, each, f"{path}/{index}", data)
    elif is_expression(value):
        text = "is an expression of JSONata, and the state is in JSONPath; give it QueryLanguage"
        yield Finding("literal-path", path, f"{text} JSONata, or write a path")
    elif isinstance(value, str) and _looks_like_path(value):
        key = path.rpartition("/")[2]
        text = f"is sent as it is written; to send what is at the path, name the field {key}.$"
        yield Finding("literal-path", path, text)


def _evaluated(value: Any, text: Text) -> Iterator[Text | Finding]:
    """Yield the value of a field whose name ends in ``.$``."""
    if not isinstance(value, str):
        message = f"expected a path or an intrinsic function, not {value!r}; remove the .$"
        yield Finding("path-syntax", text.path, message)
    elif not is_placeholder(value):
        yield text
    elif is_call(value) and not is_placeholder(_QUOTED.sub("", value)):
        # What is filled in is a part of a text, whatever it will be.
        yield replace(text, text=PLACEHOLDER.sub("x", value))


def _looks_like_path(value: str) -> bool:
    return value.startswith(("$.", "$$.")) or (value.startswith("States.") and is_call(value))
