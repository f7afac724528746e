"""The tasks of a DAG file, their arguments and their order, as its syntax has them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.importing.dags.texts import formatted, is_text, templated, together

_DAGS: Final = ("DAG", "dag")
_PLACES: Final = ("dag_id", "description", "schedule", "start_date", "end_date")
"""Arguments that Airflow 1 and 2 take by their place. Late versions of Airflow 2 have others behind
the schedule, which no file gives beside it; Airflow 3 takes the first alone."""
_CHANGING: Final = ("update", "append", "extend", "insert", "pop", "setdefault", "clear")
_REPEATED: Final = {
    "For": "a loop",
    "While": "a loop",
    "ListComp": "a loop",
    "DictComp": "a loop",
    "If": "an if",
    "GeneratorExp": "a loop",
}


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
    given: dict[str, ast.expr] = field(default_factory=dict)
    """The same as they are written."""
    constants: dict[str, ast.expr] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Names whose values are changed where they are."""
    of_airflow_3: bool = False
    """True if the file imports what no older Airflow has, whatever happens."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Places, and what is left out or not known there."""

    def read(self, tree: ast.AST) -> None:
        """Read a module."""
        self.changed = {name for node in ast.walk(tree) for name in _changed(node)}
        # Not within `try`, or for types: so do files that are of both versions.
        statements = tree.body if isinstance(tree, ast.Module) else ()
        self.of_airflow_3 = any(_is_sdk(name) for node in statements for name in _imported(node))
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
        self._around(tree)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            # A name that has two values, or whose value is changed, is known by none.
            known = target.id not in self.constants and target.id not in self.changed
            self.constants[target.id] = value if known else ast.Name(target.id)

    def _called(self, call: ast.Call) -> None:
        name = name_of(call.func)
        arguments = {each.arg: each.value for each in call.keywords if each.arg is not None}
        if name in _DAGS:
            if self.settings.get("dag_id") is not None:
                text = "is another DAG; the tasks of both are taken together, and its schedule"
                self.notes.append((f"line {call.lineno}", text))
            self.given = arguments | self._placed(call)
            self.settings |= {key: self.value(item) for key, item in self.given.items()}
        elif "task_id" in arguments:
            given = {key: self.value(item) for key, item in arguments.items()}
            variable = self.variable(call)
            task_id = given.get("task_id")
            own = task_id if isinstance(task_id, str) else f"task_{call.lineno}"
            self.tasks[variable] = Task(name, own, call.lineno, given)
        told = name in _DAGS or name.endswith("Operator")
        if told and any(each.arg is None for each in call.keywords):
            self.notes.append((f"line {call.lineno}", "arguments behind ** are left out"))

    def _placed(self, call: ast.Call) -> dict[str, ast.expr]:
        """Return the arguments of a DAG by their place, and tell those whose names are unknown."""
        starred = (at for at, each in enumerate(call.args) if isinstance(each, ast.Starred))
        known = min(next(starred, len(call.args)), len(_PLACES))
        if more := [ast.unparse(each) for each in call.args[known:]]:
            text = f"arguments by their place, {', '.join(more)}, are left out"
            self.notes.append((f"line {call.lineno}", text))
        return dict(zip(_PLACES, call.args[:known], strict=False))

    def _around(self, tree: ast.AST) -> None:
        """Tell what makes tasks more than once, or only sometimes."""
        for node in ast.walk(tree):
            kind = _REPEATED.get(type(node).__name__) or _factory(node, tree)
            if kind is None or not any(
                isinstance(inner, ast.Call) and self.variable(inner) in self.tasks
                for inner in ast.walk(node)
            ):
                continue
            line = getattr(node, "lineno", 0)
            self.notes.append((f"line {line}", f"tasks in {kind} are taken once, as they stand"))

    def variable(self, call: ast.Call) -> str:
        """Return the variable that holds what a call makes, or its place."""
        for name, value in self.constants.items():
            if value is call:
                return name
        function = name_of(call.func)
        if function in self.tasks:
            return function
        return f"line {call.lineno} column {call.col_offset}"

    def value(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Any:
        """Return the value of an expression, with references in the place of what is not known."""
        match node:
            case ast.Constant(str(text)):
                return templated(text)
            case ast.Dict():
                return self._mapping(node, seen)
            case ast.List(items) | ast.Tuple(items):
                return [self.value(item, seen) for item in items]
            case ast.Name(name) if name in self.constants and name not in seen:
                return self.value(self.constants[name], seen | {name})
            case ast.JoinedStr(parts) if all(map(_is_plain, parts)):
                made = together([self._part(part, seen) for part in parts])
                return made if isinstance(made, str | dict) else json.dumps(made)
            case ast.BinOp(left, ast.Add(), right):
                both = [self.value(left, seen), self.value(right, seen)]
                texts = all(isinstance(each, str) or is_text(each) for each in both)
                return together(both) if texts else {"Get": ast.unparse(node)}
            case ast.Constant(bool() | int() | float() | None as value):
                return value
            case ast.Call(ast.Attribute(ast.Constant(str(text)), "format"), items, []):
                return formatted(text, [self.value(item, seen) for item in items], node)
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return -number
            case _:
                return {"Get": ast.unparse(node)}

    def _mapping(self, node: ast.Dict, seen: frozenset[str]) -> Any:
        made: dict[str, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(item, seen)
                if not isinstance(inner, dict) or "Get" in inner or "Std:Join" in inner:
                    return {"Get": ast.unparse(node)}
                made |= inner
                continue
            name = self.value(key, seen)
            if not isinstance(name, str):
                return {"Get": ast.unparse(node)}
            made[name] = self.value(item, seen)
        return made

    def _part(self, part: ast.expr, seen: frozenset[str]) -> Any:
        return self.value(part.value if isinstance(part, ast.FormattedValue) else part, seen)


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a statement imports."""
    match node:
        case ast.Import(names):
            yield from (each.name for each in names)
        case ast.ImportFrom(str(module), names):
            yield from (f"{module}.{each.name}" for each in names)


def _is_sdk(module: str) -> bool:
    return f"{module}.".startswith("airflow.sdk.")


def _factory(node: ast.AST, tree: ast.AST) -> str | None:
    """Return what a function is whose body is run more than once, or never; else nothing."""
    if not isinstance(node, ast.FunctionDef):
        return None
    if is_decorated(node, "dag"):
        return None
    called = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and name_of(n.func) == node.name]
    return None if len(called) == 1 else f"a function that is called {len(called)} times"


def is_decorated(function: ast.FunctionDef, name: str) -> bool:
    """Return whether a function has a decorator of a name."""
    texts = (ast.unparse(each).partition("(")[0] for each in function.decorator_list)
    return any(text.rpartition(".")[2] == name for text in texts)


def _is_plain(part: ast.expr) -> bool:
    """Return whether a part of an f-string is a text, or a value without a format of its own."""
    if isinstance(part, ast.FormattedValue):
        return part.format_spec is None and part.conversion == -1
    return True


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield the names whose values a statement changes."""
    match node:
        case ast.AugAssign(ast.Name(name)):
            yield name
        case ast.Assign(targets) | ast.Delete(targets):
            for target in targets:
                if isinstance(target, ast.Subscript | ast.Attribute):
                    yield from (n.id for n in ast.walk(target.value) if isinstance(n, ast.Name))
                elif isinstance(target, ast.Tuple | ast.List):
                    yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        case ast.Call(ast.Attribute(ast.Name(name), method)) if method in _CHANGING:
            yield name
        case ast.For(target) | ast.comprehension(target):
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        case ast.arg(name):
            yield name


def _is_task(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).partition("(")[0].partition(".")[0] == "task"


def name_of(func: ast.expr) -> str:
    """Return the name of what is called."""
    match func:
        case ast.Name(name):
            return name
        case ast.Attribute(_, name):
            return name
        case _:
            return ""
