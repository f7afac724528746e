"""Plain words and small pieces: rules for the package's own text and code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).resolve().parents[2] / "orchestration"

_PHRASES = re.compile(
    r"\b(?:want of|what lies|of theirs|is to be had|it has to be"
    r"|(?<!there )is no (?:ARN|boolean|list|lock|number|path|reference|S3|string|text|YAML))\b",
    re.IGNORECASE,
)
# A docstring begins with an imperative verb or a noun phrase.
_OPENING = re.compile(r"(?:What|Whether|Where|How|That)\b")


def _modules(room: str) -> list[Path]:
    place = _PACKAGE / room
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def _rooms() -> list[str]:
    return sorted(
        path.name
        for path in _PACKAGE.iterdir()
        if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__")
    )


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        if isinstance(node, ast.Module | ast.ClassDef):
            for pair in pairwise(node.body):
                match pair:
                    case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                        yield text


@pytest.mark.parametrize("room", _rooms())
def test_docstrings_begin_with_a_verb_or_a_noun(room: str) -> None:
    openings = [
        f"{path.relative_to(_PACKAGE)}: {text.strip().splitlines()[0]}"
        for path in _modules(room)
        for text in _docstrings(ast.parse(path.read_text("utf-8")))
        if _OPENING.match(text.strip())
    ]
    assert openings == []


@pytest.mark.parametrize("room", _rooms())
def test_phrases_that_need_a_second_reading_stay_out(room: str) -> None:
    occurrences = [
        f"{path.relative_to(_PACKAGE)}: {match.group()}"
        for path in _modules(room)
        # Over the breaks of a long string, too.
        for match in _PHRASES.finditer(re.sub(r'"?\s*\n\s*f?"?', " ", path.read_text("utf-8")))
    ]
    assert occurrences == []


def test_a_dialect_would_be_seen() -> None:
    module = ast.parse(
        'class Job:\n    """That which runs."""\n    name: str\n    """What it is."""\n'
    )
    assert [text for text in _docstrings(module) if _OPENING.match(text)] == [
        "That which runs.",
        "What it is.",
    ]
    assert _PHRASES.search("refused for want of capacity")


def test_functions_and_files_stay_small() -> None:
    large = set()
    for path in sorted(_PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        name = path.relative_to(_PACKAGE).as_posix()
        if len(source.splitlines()) > 400:
            large.add(f"{name} has more than 400 lines")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (node.end_lineno or 0) - node.lineno >= 60:
                large.add(f"{name}: {node.name} has more than 60 lines")
    assert large == set()


def test_a_room_has_at_most_sixteen_modules() -> None:
    modules = {
        folder.relative_to(_PACKAGE).as_posix(): len(list(folder.glob("*.py")))
        for folder in _PACKAGE.rglob("*")
        if folder.is_dir()
    }
    # It is copied into folders of training scripts, where it is one flat package.
    assert modules.pop("runtime") <= 19
    assert {room: count for room, count in modules.items() if count > 16} == {}
