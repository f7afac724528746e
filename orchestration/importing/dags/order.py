"""The order of the tasks of a DAG file, as its expressions and calls say it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import pairwise

from orchestration.importing.dags.syntax import Dag, is_decorated, name_of


def order(dag: Dag, tree: ast.AST) -> None:
    """Note which tasks of a module wait for which."""
    made = _Order(dag)
    for node in ast.walk(tree):
        match node:
            case ast.With(items, body):
                made.grouped(items, body)
            case ast.FunctionDef() if is_decorated(node, "task_group"):
                made.groups[node.name] = made.inside(node.body)
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value):
                made.ordered(value)
            case ast.Assign(value=ast.BinOp() as value) | ast.Return(ast.BinOp() as value):
                if isinstance(value.op, ast.RShift | ast.LShift):
                    made.ordered(value)


@dataclass
class _Order:
    dag: Dag
    groups: dict[str, list[str]] = field(default_factory=dict)
    """The tasks of groups, by the variables and functions that hold these."""

    def grouped(self, items: list[ast.withitem], body: list[ast.stmt]) -> None:
        """Note the tasks of a ``with TaskGroup(...) as group``."""
        for item in items:
            match item:
                case ast.withitem(ast.Call(func), ast.Name(name)) if name_of(func) == "TaskGroup":
                    self.groups[name] = self.inside(body)

    def inside(self, body: list[ast.stmt]) -> list[str]:
        """Return the tasks that statements make."""
        calls = [n for each in body for n in ast.walk(each) if isinstance(n, ast.Call)]
        variables = dict.fromkeys(map(self.dag.variable, calls))
        return [each for each in variables if each in self.dag.tasks]

    def ordered(self, node: ast.expr) -> list[str]:
        """Note an order of tasks; return those that the expression stands for."""
        match node:
            case ast.Name(name):
                return self._named(name)
            case ast.List(items) | ast.Tuple(items):
                return [each for item in items for each in self.ordered(item)]
            case ast.Call() if (variable := self.dag.variable(node)) in self.dag.tasks:
                return [variable]
            case ast.Call(ast.Name(name)) if name in self.groups:
                return self.groups[name]
            case ast.BinOp(ast.BinOp(left, ast.RShift(), ast.Call(func)), ast.RShift(), right) if (
                name_of(func) == "Label"
            ):
                return self._in_turn(self._standing(left), self._standing(right))
            case ast.BinOp(left, ast.RShift(), right):
                return self._in_turn(self._standing(left), self._standing(right))
            case ast.BinOp(left, ast.LShift(), right):
                first, then = self._standing(right), self._standing(left)
                self._in_turn(first, then)
                return first
            case ast.Call():
                self._by_function(node)
        return []

    def _named(self, name: str) -> list[str]:
        """Return the tasks that a name stands for."""
        if name in self.dag.tasks or name in self.groups:
            return self.groups.get(name, [name])
        match self.dag.constants.get(name):
            case ast.Call(func):
                function = name_of(func)
                known = [function] if function in self.dag.tasks else []
                return self.groups.get(function, known)
            case ast.List() | ast.BinOp() as made:
                return self.ordered(made)
        return []

    def _by_function(self, call: ast.Call) -> None:
        match call:
            case ast.Call(func, arguments) if name_of(func) == "chain":
                for one, other in pairwise(arguments):
                    self._linked(one, other)
            case ast.Call(func, [one, other]) if name_of(func) == "cross_downstream":
                self._in_turn(self._standing(one), self._standing(other))
            case ast.Call(ast.Attribute(owner, "set_downstream"), [other]):
                self._in_turn(self._standing(owner), self._standing(other))
            case ast.Call(ast.Attribute(owner, "set_upstream"), [other]):
                self._in_turn(self._standing(other), self._standing(owner))
            case ast.Call(ast.Attribute(_, ("set_downstream" | "set_upstream"))):
                self._untold(call)

    def _linked(self, one: ast.expr, other: ast.expr) -> None:
        """Order two arguments of ``chain``: lists of one length task by task."""
        first, then = self._standing(one), self._standing(other)
        if isinstance(one, ast.List) and isinstance(other, ast.List) and len(first) == len(then):
            for before, after in zip(first, then, strict=True):
                self._in_turn([before], [after])
        else:
            self._in_turn(first, then)

    def _standing(self, node: ast.expr) -> list[str]:
        """Return the tasks that a part of an order stands for; tell of one that stands for none."""
        found = self.ordered(node)
        if not found:
            self._untold(node)
        return found

    def _untold(self, node: ast.expr) -> None:
        place = f"line {node.lineno}"
        self.dag.notes.append((place, f"the order by {ast.unparse(node)} is left out"))

    def _in_turn(self, first: list[str], then: list[str]) -> list[str]:
        for task in then:
            self.dag.before.setdefault(task, {}).update(dict.fromkeys(first))
        return then
