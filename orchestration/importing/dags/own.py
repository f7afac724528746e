"""DAG files of this package, which name the YAML of their pipeline."""

from __future__ import annotations

import ast

from orchestration.importing.dags.syntax import name_of


def described(source: str) -> str | None:
    """Return the file that the one call of ``orchestration.airflow.dag`` names, else nothing."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    imported = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "orchestration.airflow"
        and any(alias.name == "dag" for alias in node.names)
        for node in ast.walk(tree)
    )
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and name_of(n.func) == "dag"]
    match calls:
        case [ast.Call(args=[ast.Constant(str(file)), *_])] if imported:
            return file
    return None
