"""YAML, read safely and as YAML 1.2 means it.

Only plain data: no tags that build objects, no key twice. ``no``, ``on`` and ``12:30`` are text,
``1e-4`` is a number, and digits that begin with a zero (an AWS account) stay as they are written.
https://yaml.org/spec/1.2.2/#103-core-schema
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import PipelineError, Problem

if TYPE_CHECKING:
    import yaml

_MOST_VALUES = 100_000
"""Aliases can make a short file stand for more than memory holds."""
_PREFIX = "tag:yaml.org,2002:"
_SCALARS = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    "float": (
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)"
        r"|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    "null": (r"~|null|Null|NULL|", ("~", "n", "N", "")),
    "merge": (r"<<", "<"),
}


def load(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, or a :class:`PipelineError` that names the line."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _refused(path, f"can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refused(path, "is not UTF-8") from error
    try:
        data = yaml.load(text, Loader=_loader())  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        raise _refused(path, _where(error)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _refused(path, f"is no YAML: {error}") from error
    if not isinstance(data, dict):
        raise _refused(path, "holds no mapping with name, workspace and stages")
    if _expanded(data) > _MOST_VALUES:
        raise _refused(path, f"stands for more than {_MOST_VALUES} values; write fewer aliases")
    return data


def _refused(path: Path, message: str) -> PipelineError:
    return PipelineError([Problem(str(path), message)])


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    context = f" ({error.context})" if error.context else ""
    return f"{place}{error.problem}{context}"


def _loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML 1.2's core schema on top of PyYAML's safe loader."""

        yaml_implicit_resolvers: dict[str, Any] = {}

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != f"{_PREFIX}merge":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"the key {key.value!r} stands here twice", key.start_mark
                        )
                    seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

    for name, (pattern, first) in _SCALARS.items():
        Loader.add_implicit_resolver(f"{_PREFIX}{name}", re.compile(f"(?:{pattern})$"), list(first))
    return Loader


def _expanded(data: object) -> int:
    """How many values data stands for, counted no further than it matters."""
    left, count = [data], 0
    while left and count <= _MOST_VALUES:
        value = left.pop()
        count += 1
        if isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return count
