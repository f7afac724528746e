"""Requests of Tasks, against botocore's shapes and with the names that Step Functions has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.backends.stepfunctions.integrations.spelling import spelled
from orchestration.checks.requests import operation_model, violations
from orchestration.checks.shapes import Shape
from orchestration.errors import Problem, near
from orchestration.expressions import Tree
from orchestration.lint.findings import Finding
from orchestration.lint.machines import State, pointer
from orchestration.lint.tasks import dynamodb
from orchestration.lint.tasks.resources import Integration, integration
from orchestration.lint.values import is_expression, is_placeholder
from orchestration.refs import Expression

_LARGEST_PAYLOAD: Final = 262_144
READERS: Final = ("getObject", "listObjectsV2")
_ATTRIBUTE: Final = "AttributeValue"
_SURE: Final = ("expected an object", "expected a list", "takes exactly", "AWS does not know")
"""Problems that no conversion mends: `"true"` is taken for true, and 5 for `"5"`."""
_OWN_VALUES: Final = {
    "Method": ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"),
    "AuthType": ("IAM_ROLE", "NO_AUTH", "RESOURCE_POLICY"),
}
"""Values of fields where the request is not that of an API."""
_TO_REPLACE = re.compile(r"^'[^']*([A-Z]{2,}_[A-Z]+|EXAMPLE)")
"""Texts that documentation has in place of somebody's own."""


@dataclass(frozen=True, slots=True)
class _Unknown(Expression[Any]):
    """A value that is known when the state runs."""


_UNKNOWN: Final = _Unknown()


def findings(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the request of a Task."""
    field = "Parameters" if state.language == "JSONPath" else "Arguments"
    request = state.fields.get(field)
    if state.type != "Task" or not isinstance(request, Mapping):
        return
    path = f"{state.path}/{field}"
    size = len(json.dumps(request, ensure_ascii=False, default=str).encode())
    if size > _LARGEST_PAYLOAD:
        text = f"{size} bytes; a payload has at most {_LARGEST_PAYLOAD}: keep it in S3"
        yield Finding("limit", path, text)
    used = integration(state)
    if used is None:
        return
    values = _plain(request, state.language)
    if not isinstance(values, Mapping):
        return
    if used.api is None:
        yield from _own(values, path, used)
    else:
        yield from _of_api(used, used.api, values, path)


def of_reader(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the request of a distributed Map's reader."""
    reader = state.fields.get("ItemReader")
    field = "Parameters" if state.language == "JSONPath" else "Arguments"
    request = reader.get(field) if isinstance(reader, Mapping) else None
    if not isinstance(reader, Mapping) or not isinstance(request, Mapping):
        return
    action = str(reader.get("Resource")).rpartition(":")[2]
    api = ("s3", action[:1].upper() + action[1:])
    values = _plain(request, state.language)
    if action in READERS and isinstance(values, Mapping):
        used = Integration("s3", action, "", api, is_sdk=True)
        yield from _of_api(used, api, values, f"{state.path}/ItemReader/{field}")


def _of_api(
    used: Integration, api: tuple[str, str], values: Mapping[str, Tree], path: str
) -> Iterator[Finding]:
    model = operation_model(*api)
    if model is None or model.input_shape is None:
        return
    names = _Names(used, path)
    tree = names.structure(model.input_shape, values, path)
    yield from names.findings
    for problem in violations(*api, tree):
        yield from names.told(problem)
    if api[0] == "dynamodb":
        yield from dynamodb.findings(values, path)


def _own(values: Mapping[str, Tree], path: str, used: Integration) -> Iterator[Finding]:
    for name in sorted(used.required - set(values)):
        yield Finding("missing-request-field", path, f"{used.resource} needs {name}")
    for name in values:
        if name not in used.own:
            text = f"{used.resource} has no field {name}{near(name, used.own)}"
            yield Finding("unknown-request-field", f"{path}/{name}", text)
    for name, known in _OWN_VALUES.items():
        value = values.get(name)
        if isinstance(value, str) and value not in known:
            text = f"{value!r} is unknown{near(value, known)}"
            yield Finding("wrong-request-value", f"{path}/{name}", text)


def _plain(value: Any, language: str) -> Tree:
    """Return a request with its evaluated values as unknown ones, and names without ``.$``."""
    if isinstance(value, Mapping):
        plain: dict[str, Tree] = {}
        for key, item in value.items():
            if language == "JSONPath" and str(key).endswith(".$"):
                plain[str(key)[:-2]] = _UNKNOWN
            else:
                plain[str(key)] = _plain(item, language)
        return plain
    if isinstance(value, list):
        return [_plain(item, language) for item in value]
    is_open = is_placeholder(value) or (language == "JSONata" and is_expression(value))
    result: Tree = _UNKNOWN if is_open else value
    return result


class _Names:
    """The names of a request's fields: the API's, by those in the file."""

    def __init__(self, used: Integration, path: str) -> None:
        self.findings: list[Finding] = []
        self._used = used
        self._root = path
        self._paths: dict[str, str] = {"": path}

    def structure(self, shape: Shape, value: Mapping[str, Tree], path: str, at: str = "") -> Any:
        """Return an object with the API's names; what the API does not know is left out."""
        members = {spelled(name, shape.name): name for name in shape.members}
        if not self._used.is_sdk:
            members = {**{name: name for name in shape.members if name[:1].isupper()}, **members}
        tree: dict[str, Tree] = {}
        for key, item in value.items():
            where, name = f"{path}/{pointer(key)}", members.get(key)
            if name is not None:
                below = f"{at}.{name}" if at else name
                self._paths[below] = where
                tree[name] = self.value(shape.members[name], item, where, below)
            elif at or key not in self._used.extra:
                self.findings.append(self._unknown(key, members, where))
        for name in shape.required_members:
            free = shape.metadata["members"].get(name, {}).get("idempotencyToken")
            if name not in tree and (free or (not at and spelled(name) in self._used.optional)):
                tree[name] = _UNKNOWN
        return tree

    def _unknown(self, key: str, members: Mapping[str, str], where: str) -> Finding:
        same = [name for name in members if name.casefold() == key.casefold()]
        hint = f"; did you mean {same[0]!r}?" if same else near(key, members)
        text = f"{self._used.resource} has no field {key} there{hint}"
        return Finding("unknown-request-field", where, text)

    def value(self, shape: Shape, value: Tree, path: str, at: str) -> Tree:
        """Return a value with the API's names."""
        is_document = bool(shape.metadata.get("document"))
        match shape.type_name:
            case "structure" if isinstance(value, Mapping) and not is_document:
                return self.structure(shape, value, path, at)  # type: ignore[no-any-return]
            case "map" if isinstance(value, Mapping):
                tree: dict[str, Tree] = {}
                for key, item in value.items():
                    where, below = f"{path}/{pointer(key)}", f"{at}.{key}"
                    self._paths[below] = where
                    tree[key] = self.value(shape.value, item, where, below)
                return tree
            case "list" if isinstance(value, list):
                items = []
                for index, item in enumerate(value):
                    where, below = f"{path}/{index}", f"{at}[{index}]"
                    self._paths[below] = where
                    items.append(self.value(shape.member, item, where, below))
                return items
            case "structure" if self._used.service == "dynamodb" and shape.name == _ATTRIBUTE:
                # Recorded of definitions in use: a text stands for `{"S": text}`.
                return _UNKNOWN
            case "structure" | "blob":
                return _UNKNOWN if is_document or shape.type_name == "blob" else value
            case "string" if isinstance(value, Mapping | list):
                # An object is sent as its JSON: SQS's MessageBody, SNS's Message.
                return _UNKNOWN
            case _:
                return value

    def told(self, problem: Problem) -> Iterator[Finding]:
        """Yield what is wrong with a value, by the path in the file."""
        at, message = problem.field, problem.message
        if message == "is required":
            around, _, name = at.rpartition(".")
            path = self._paths.get(around, self._root)
            text = f"{self._used.resource} needs {spelled(name)}"
            yield Finding("missing-request-field", path, text)
            return
        path = self._paths.get(at.partition(" key ")[0], self._root)
        if "does not match AWS's pattern" in message and _TO_REPLACE.search(message):
            return
        sure = message.startswith(_SURE)
        yield Finding("wrong-request-value" if sure else "doubtful-request-value", path, message)
