"""YAML, read safely and as YAML 1.2 means it.

Only plain data: no tags that build objects, no key twice. ``no``, ``on`` and ``12:30`` are text,
``1e-4`` is a number, and digits that begin with a zero (an AWS account) stay as they are written.
https://yaml.org/spec/1.2.2/#103-core-schema
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline.unusable import MOST_DIGITS

if TYPE_CHECKING:
    import yaml

_MOST_VALUES = 100_000
"""Aliases can make a short file stand for more than memory holds."""
_MOST_BYTES = 1 << 19
TWICE = "stands here twice"
_DEEPEST = 200
"""Lists and mappings in each other: Python's own recursion ends at a few hundred."""
_TOO_DEEP = f"more than {_DEEPEST} lists and mappings in each other"
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
_TAGS = {**dict.fromkeys((*_SCALARS, "str"), "scalar"), "map": "mapping", "seq": "sequence"}
"""The tags that are known, by the kind of node that each is for."""


def load(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, or a :class:`PipelineError` that names the line."""
    data = data_of(path)
    if not isinstance(data, dict):
        raise _refused(path, "holds no mapping with name, workspace and stages")
    return data


def data_of(path: Path) -> Any:
    """The data in a YAML file, or a :class:`PipelineError` that names the line."""
    return parsed(_text(path), path)


def parsed(text: str, path: Path) -> Any:
    """The data in a text of YAML; errors name the file that it is from."""
    import yaml

    try:
        data = yaml.load(text, Loader=_loader())  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        raise _refused(path, _where(error)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _refused(path, f"is not YAML: {error}") from error
    if _expanded(data) > _MOST_VALUES:
        raise _refused(path, f"stands for more than {_MOST_VALUES} values; write fewer aliases")
    return data


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _refused(path, f"can't be read: {error.strerror}") from error
    except ValueError as error:
        raise _refused(path, f"is not a path: {error}") from error
    if len(content) > _MOST_BYTES:
        raise _refused(path, f"has more than {_MOST_BYTES} bytes; a description has fewer")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _refused(path, "is not UTF-8") from error


def _refused(path: Path, message: str) -> PipelineError:
    return PipelineError([Problem(str(path), message)])


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    context = f" ({error.context})" if error.context else ""
    return f"{place}{error.problem}{context}"


_SHORT = 72
"""Letters of a list or a mapping that is written on one line, as ``{parameter: bucket}``."""


def dumped(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that means the same here as where YAML 1.1 is read."""
    import yaml

    text: str = yaml.dump(
        dict(data), Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=100
    )
    return text


def _dumper() -> type[yaml.SafeDumper]:
    """Return PyYAML's safe dumper, with quotes around what YAML 1.2 alone takes for a number."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _: object) -> bool:
            return True

    def mapping(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.MappingNode:
        return dumper.represent_mapping(f"{_PREFIX}map", value, flow_style=_on_one_line(value))

    def sequence(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
        return dumper.represent_sequence(f"{_PREFIX}seq", value, flow_style=_on_one_line(value))

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        # PyYAML's plain and single-quoted styles lose these line ends of YAML 1.1.
        special = not {"\x85", "\u2028", "\u2029"}.isdisjoint(value)
        style = '"' if special else "|" if "\n" in value.strip("\n") else None
        return dumper.represent_scalar(f"{_PREFIX}str", value, style=style)

    Dumper.add_representer(dict, mapping)
    Dumper.add_representer(list, sequence)
    Dumper.add_representer(str, text)
    for name, (pattern, first) in _SCALARS.items():
        Dumper.add_implicit_resolver(f"{_PREFIX}{name}", re.compile(f"(?:{pattern})$"), list(first))
    return Dumper


def _on_one_line(value: object) -> bool:
    return len(json.dumps(value, ensure_ascii=False, default=str)) <= _SHORT


def _loader() -> type[yaml.SafeLoader]:
    """Return YAML 1.2's core schema on top of PyYAML's safe loader."""
    import yaml

    class Loader(_bounded(yaml.SafeLoader)):  # type: ignore[misc]  # PyYAML is loaded on use
        yaml_implicit_resolvers: dict[str, Any] = {}
        # Plain data alone: no bytes, no sets and no dates.
        yaml_constructors = {
            tag: constructor
            for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
            if tag is None or str(tag).removeprefix(_PREFIX) in _TAGS
        }

        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            # Before merge keys are resolved, which writes the keys of others into the node.
            node: yaml.MappingNode = super().compose_mapping_node(anchor)
            if wrong := _repeated(node.value):
                message = f"the key {wrong.value!r} {TWICE}"
                raise _error(message, wrong.start_mark)
            return node

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            if wrong := _mistagged(node):
                raise _error(wrong, node.start_mark)
            return super().construct_object(node, deep=deep)

    for name, (pattern, first) in _SCALARS.items():
        Loader.add_implicit_resolver(f"{_PREFIX}{name}", re.compile(f"(?:{pattern})$"), list(first))
    return Loader


def _bounded(loader: type[yaml.SafeLoader]) -> Any:
    """Return the loader with bounds on what a short text can ask of it."""

    class Bounded(loader):  # type: ignore[valid-type,misc]  # PyYAML is loaded on use
        depth = 0
        merged = 0

        def fetch_flow_collection_start(self, TokenClass: Any) -> None:
            # The scanner looks at all that are open for each token, before a node is composed.
            if self.flow_level >= _DEEPEST:
                raise _error(_TOO_DEEP, self.get_mark())
            super().fetch_flow_collection_start(TokenClass)

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.depth > _DEEPEST:
                raise _error(_TOO_DEEP, self.peek_event().start_mark)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > _MOST_VALUES:
                message = f"merge keys stand for more than {_MOST_VALUES} values; write fewer"
                raise _error(message, node.start_mark)

    return Bounded


def _error(message: str, mark: Any) -> Exception:
    from yaml.constructor import ConstructorError

    return ConstructorError(None, None, message, mark)


def _repeated(pairs: list[tuple[Any, Any]]) -> Any:
    """Return the first key that stands in a mapping twice."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key.id == "scalar" and key.tag != f"{_PREFIX}merge":
            if key.value in seen:
                return key
            seen.add(key.value)
    return None


def _mistagged(node: Any) -> str | None:
    """Return why a node is not what its tag says; ``None`` where it is."""
    name = node.tag.removeprefix(_PREFIX)
    kind = _TAGS.get(name, node.id)
    if node.id != kind:
        return f"expected a {kind} after !!{name}, got a {node.id}"
    if name not in _SCALARS or name == "merge":
        return None
    if re.fullmatch(_SCALARS[name][0], node.value) is None:
        return f"expected !!{name}, got {node.value!r:.60}"
    if name == "int" and len(node.value) > MOST_DIGITS:
        return f"a number of {len(node.value)} digits; the most is {MOST_DIGITS}"
    return None


def _expanded(data: object) -> int:
    """Return the number of values that data stands for, counted no further than it matters."""
    left, count = [data], 0
    while left and count <= _MOST_VALUES:
        value = left.pop()
        count += 1
        if isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return count
