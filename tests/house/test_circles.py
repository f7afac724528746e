"""No module imports, by whatever detour, a module that imports it.

Imports inside functions and in ``TYPE_CHECKING`` blocks count: they hide a circle, they do not
remove it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_package_has_no_circle_of_imports() -> None:
    assert list(_circles(_imports(_ROOT / "orchestration"))) == []


def test_an_import_in_a_function_and_one_for_types_close_a_circle(tmp_path: Path) -> None:
    package = tmp_path / "circling"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "first.py").write_text(
        textwrap.dedent("""
            def later():
                from circling import second
        """)
    )
    (package / "second.py").write_text(
        textwrap.dedent("""
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from circling.third import Thing
        """)
    )
    (package / "third.py").write_text("import circling.first\nclass Thing: ...\n")
    (package / "apart.py").write_text("from circling import first\n")

    assert list(_circles(_imports(package))) == [
        frozenset({"circling.first", "circling.second", "circling.third"})
    ]


def _imports(package: Path) -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports, anywhere in its text."""
    paths = {_module(path, package.parent): path for path in package.rglob("*.py")}
    return {
        module: {
            target
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for target in _targets(node, path.relative_to(package.parent), paths.keys())
            if target != module
        }
        for module, path in paths.items()
    }


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(node: ast.Import | ast.ImportFrom, path: Path, modules: Set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    # `from .checkpoints import x` in `runtime/__init__.py`: one folder up from the file.
    above = path.parts[: -node.level] if node.level else ()
    source = ".".join(filter(None, (*above, node.module)))
    for alias in node.names:
        target = f"{source}.{alias.name}"
        yield from [name for name in (target, source) if name in modules][:1]


def _circles(imports: Mapping[str, Set[str]]) -> Iterator[frozenset[str]]:
    """The sets of modules that reach each other, by their imports."""
    reached = {module: _reached(module, imports) for module in imports}
    seen: set[str] = set()
    for module in sorted(imports):
        circle = {other for other in reached[module] if module in reached[other]}
        if circle and module not in seen:
            seen |= circle
            yield frozenset(circle)


def _reached(start: str, imports: Mapping[str, Set[str]]) -> set[str]:
    reached: set[str] = set()
    pending = [start]
    while pending:
        new = imports[pending.pop()] - reached
        reached |= new
        pending += new
    return reached
