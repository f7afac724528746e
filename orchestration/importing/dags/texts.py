"""Texts of a DAG file: templates, formats, and texts put together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

_TEMPLATE: Final = re.compile(r"\{\{(.*?)\}\}|\{%.*?%\}", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?:params|dag_run\.conf)(?:\.(\w+)|\[['\"](\w+)['\"]\])")
_RESULT: Final = re.compile(
    r"(?:ti|task_instance)\.xcom_pull\(\s*(?:task_ids\s*=\s*)?['\"](\w+)['\"]\s*\)"
    r"((?:\[['\"]\w+['\"]\])+)"
)
_KEY: Final = re.compile(r"\['?\"?(\w+)")
_KINDS: Final = ("Training", "Processing", "Transform", "Tuning", "Model", "Endpoint")


def templated(text: str) -> Any:
    """Return a text with references in the place of its templates."""
    return together(list(_pieces(text)))


def _pieces(text: str) -> Iterator[Any]:
    position = 0
    for match in _TEMPLATE.finditer(text):
        yield text[position : match.start()]
        inner = (match[1] or "").strip()
        parameter, result = _PARAMETER.fullmatch(inner), _RESULT.fullmatch(inner)
        if parameter:
            yield {"Get": f"Parameters.{parameter[1] or parameter[2]}"}
        elif result and (places := _KEY.findall(result[2])):
            # Operators return what describes the job, under the name of its kind.
            below = places[1:] if places[0] in _KINDS else places
            yield {"Get": f"Steps.{result[1]}.{'.'.join(below)}"}
        else:
            yield {"Get": match[0]}
        position = match.end()
    yield text[position:]


def formatted(text: str, values: list[Any], node: ast.expr) -> Any:
    """Return what ``text.format(*values)`` makes; of formats of their own nothing is known."""
    pieces = re.split(r"\{(\d*)\}", text)
    numbers = [int(each) if each else n for n, each in enumerate(pieces[1::2])]
    if any(number >= len(values) for number in numbers) or "{" in "".join(pieces[::2]):
        return {"Get": ast.unparse(node)}
    between = [values[number] for number in numbers]
    return together([p for pair in zip(pieces[::2], [*between, ""], strict=True) for p in pair])


def together(parts: list[Any]) -> Any:
    """Return texts and references put together."""
    flat: list[Any] = []
    for part in parts:
        joined = part.get("Std:Join") if isinstance(part, dict) else None
        flat += joined["Values"] if joined else [part]
    kept = [part for part in flat if part != ""]
    if len(kept) == 1:
        return kept[0]
    if all(isinstance(part, str | int | float) for part in kept):
        return "".join(map(str, kept))
    return {"Std:Join": {"On": "", "Values": kept}}


def is_text(value: object) -> bool:
    """Return whether a value is a reference, or texts put together with some."""
    return isinstance(value, dict) and bool(value.keys() & {"Get", "Std:Join"})
