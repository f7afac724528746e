"""DAG files of this package, which name the YAML of their pipeline."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestration.importing.dags.syntax import name_of
from orchestration.importing.imported import Note

_CALLS: Final = ("dag", "task_group")


@dataclass(frozen=True, slots=True)
class Described:
    """The file that describes the pipeline of a DAG file."""

    file: str
    """As the DAG file names it: a relative path is one from there."""
    notes: tuple[Note, ...]
    """On what the DAG file says beside it."""


def described(source: str) -> Described | None:
    """Return the file that the one call of :mod:`orchestration.airflow` names, else nothing."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "orchestration.airflow"
        for alias in node.names
        if alias.name in _CALLS
    }
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and name_of(n.func) in names]
    if len(calls) != 1:
        return None
    [call] = calls
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "pipeline")]
    match given:
        case [ast.Constant(str(file))]:
            return Described(file, (*_arguments(call, file), *_statements(tree, call, file)))
    return None


def _arguments(call: ast.Call, file: str) -> Iterator[Note]:
    """Yield what the call is given beside the pipeline."""
    name = name_of(call.func)
    for each in call.keywords:
        match each:
            case ast.keyword("pipeline"):
                continue
            case ast.keyword(None, value):
                yield Note(f"{name}(**{ast.unparse(value)})", _left_out(file))
            case ast.keyword("parameters", ast.Dict(keys, values)):
                for key, value in zip(keys, values, strict=True):
                    yield _parameter(name, key, value, file)
            case _:
                told = f"{ast.unparse(each.value)} {_left_out(file)}"
                yield Note(f"{name}.{each.arg}", told)


def _parameter(name: str, key: ast.expr | None, value: ast.expr, file: str) -> Note:
    match key:
        case None:
            return Note(f"{name}.parameters", f"**{ast.unparse(value)} {_left_out(file)}")
        case ast.Constant(str(own)):
            pass
        case _:
            own = ast.unparse(key)
    told = f"{ast.unparse(value)} {_left_out(file)}; give it to the runs, or as the default there"
    return Note(f"{name}.parameters.{own}", told)


def _statements(tree: ast.Module, call: ast.Call, file: str) -> Iterator[Note]:
    """Yield what a file does beside the call."""
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
                continue
            case ast.Expr(value) | ast.Assign([ast.Name()], value) if value is call:
                continue
            case ast.AnnAssign(ast.Name(), _, value) if value is call:
                continue
        first, *more = ast.unparse(node).splitlines()
        told = f"{first} …" if more else first
        yield Note(f"line {node.lineno}", f"{told} {_left_out(file)}")


def _left_out(file: str) -> str:
    return f"is left out: it is not in {file}"
