"""The tasks of a DAG file, their arguments and their order, as its syntax has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

_TEMPLATE: Final = re.compile(r"\{\{(.*?)\}\}|\{%.*?%\}", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?:params|dag_run\.conf)(?:\.(\w+)|\[['\"](\w+)['\"]\])")
_RESULT: Final = re.compile(
    r"(?:ti|task_instance)\.xcom_pull\(\s*(?:task_ids\s*=\s*)?['\"](\w+)['\"]\s*\)"
    r"((?:\[['\"]\w+['\"]\])+)"
)
_KEY: Final = re.compile(r"\['?\"?(\w+)")
_KINDS: Final = ("Training", "Processing", "Transform", "Tuning", "Model", "Endpoint")


@dataclass(frozen=True, slots=True)
class Task:
    """A call of an operator."""

    operator: str
    name: str
    line: int
    arguments: dict[str, Any]

    @property
    def path(self) -> str:
        """The place of the task in the file."""
        return f"{self.name} (line {self.line})"


@dataclass
class Dag:
    """The tasks of a file, by the variables that hold them."""

    tasks: dict[str, Task] = field(default_factory=dict)
    before: dict[str, dict[str, None]] = field(default_factory=dict)
    """Variables of the tasks that each waits for."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments of the DAG."""
    constants: dict[str, ast.expr] = field(default_factory=dict)

    def read(self, tree: ast.AST) -> None:
        """Read a module."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._assigned(node.targets[0], node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assigned(node.target, node.value)
            elif isinstance(node, ast.FunctionDef) and any(map(_is_task, node.decorator_list)):
                self.tasks[node.name] = Task("function", node.name, node.lineno, {})
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._called(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                self._ordered(node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.constants.setdefault(target.id, value)

    def _called(self, call: ast.Call) -> None:
        name = _name(call.func)
        arguments = {each.arg: each.value for each in call.keywords if each.arg is not None}
        if name in ("DAG", "dag"):
            self.settings |= {key: self.value(item) for key, item in arguments.items()}
            if call.args:
                self.settings.setdefault("dag_id", self.value(call.args[0]))
        elif "task_id" in arguments:
            given = {key: self.value(item) for key, item in arguments.items()}
            variable = self._variable(call)
            task_id = given.get("task_id")
            own = task_id if isinstance(task_id, str) else variable
            self.tasks[variable] = Task(name, own, call.lineno, given)

    def _variable(self, call: ast.Call) -> str:
        for name, value in self.constants.items():
            if value is call:
                return name
        function = _name(call.func)
        return function if function in self.tasks else f"line {call.lineno}"

    def _ordered(self, node: ast.expr) -> list[str]:
        """Note an order of tasks; return those that the expression stands for."""
        match node:
            case ast.Name(name) if name in self.tasks:
                return [name]
            case ast.Name(name) if isinstance(made := self.constants.get(name), ast.Call):
                function = _name(made.func)
                return [function] if function in self.tasks else []
            case ast.List(items) | ast.Tuple(items):
                return [each for item in items for each in self._ordered(item)]
            case ast.Call() if (variable := self._variable(node)) in self.tasks:
                return [variable]
            case ast.BinOp(left, ast.RShift(), right):
                return self._in_turn(self._ordered(left), self._ordered(right))
            case ast.BinOp(left, ast.LShift(), right):
                first = self._ordered(left)
                self._in_turn(self._ordered(right), first)
                return self._ordered(right)
            case ast.Call(func, arguments) if _name(func) in ("chain", "cross_downstream"):
                for one, other in pairwise(arguments):
                    self._in_turn(self._ordered(one), self._ordered(other))
            case ast.Call(
                ast.Attribute(owner, ("set_downstream" | "set_upstream") as way), [other]
            ):
                both = self._ordered(owner), self._ordered(other)
                self._in_turn(*(both if way == "set_downstream" else reversed(both)))
        return []

    def _in_turn(self, first: list[str], then: list[str]) -> list[str]:
        for task in then:
            self.before.setdefault(task, {}).update(dict.fromkeys(first))
        return then

    def value(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Any:
        """Return the value of an expression, with references in the place of what is not known."""
        match node:
            case ast.Constant(str(text)):
                return templated(text)
            case ast.Constant(value):
                return value
            case ast.Dict(keys, values):
                return {
                    str(self.value(key, seen)): self.value(item, seen)
                    for key, item in zip(keys, values, strict=True)
                    if key is not None
                }
            case ast.List(items) | ast.Tuple(items):
                return [self.value(item, seen) for item in items]
            case ast.Name(name) if name in self.constants and name not in seen:
                return self.value(self.constants[name], seen | {name})
            case ast.JoinedStr(parts):
                return _together([self._part(part, seen) for part in parts])
            case ast.BinOp(left, ast.Add(), right):
                return _together([self.value(left, seen), self.value(right, seen)])
            case ast.Call(ast.Attribute(ast.Constant(str(text)), "format"), items, []):
                return _formatted(text, [self.value(item, seen) for item in items], node)
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return -number
            case _:
                return {"Get": ast.unparse(node)}

    def _part(self, part: ast.expr, seen: frozenset[str]) -> Any:
        return self.value(part.value if isinstance(part, ast.FormattedValue) else part, seen)


def templated(text: str) -> Any:
    """Return a text with references in the place of its templates."""
    return _together(list(_pieces(text)))


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


def _formatted(text: str, values: list[Any], node: ast.expr) -> Any:
    pieces = re.split(r"\{(\d*)\}", text)
    numbers = [int(each) if each else n for n, each in enumerate(pieces[1::2])]
    if any(number >= len(values) for number in numbers) or "{" in "".join(pieces[::2]):
        return {"Get": ast.unparse(node)}
    between = [values[number] for number in numbers]
    return _together([p for pair in zip(pieces[::2], [*between, ""], strict=True) for p in pair])


def _together(parts: list[Any]) -> Any:
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


def _is_task(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).partition("(")[0].partition(".")[0] == "task"


def _name(func: ast.expr) -> str:
    match func:
        case ast.Name(name):
            return name
        case ast.Attribute(_, name):
            return name
        case _:
            return ""
