"""Texts and pictures that a command has made: printed, written to a file, or compared with one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import typer

from orchestration.cli.output import FAILED, colored_diff, document, note


def deliver(
    text: str,
    path: Path | None,
    *,
    check: bool,
    again: str,
    content: object = None,
    warnings: Sequence[str] = (),
) -> None:
    """Print a text, write it to a file, or compare it with one.

    With ``content``, which is the same as data, one JSON document says what was done.
    """
    as_json = content is not None
    if path is None:
        if check:
            raise typer.BadParameter("needs a file to compare: -o FILE", param_hint="--check")
        if as_json:
            document(
                {"file": None, "state": "printed", "content": content, "warnings": [*warnings]}
            )
        else:
            typer.echo(text, nl=not text.endswith("\n"))
        return
    old = _content(path)
    state = _state(path, fresh=old == text, check=check)
    if state == "written":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    diff = _diff(old, text, path) if state == "stale" and old is not None else []
    if as_json:
        document({"file": str(path), "state": state, "diff": diff, "warnings": [*warnings]})
    else:
        colored_diff(diff)
    _end(path, state, again)


def deliver_picture(
    picture: bytes, path: Path, *, check: bool, again: str, as_json: bool = False
) -> None:
    """Write a picture to a file, or compare it with one."""
    old = path.read_bytes() if path.is_file() else None
    state = _state(path, fresh=old == picture, check=check)
    if state == "written":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
    if as_json:
        document({"file": str(path), "state": state, "diff": [], "warnings": []})
    _end(path, state, again)


def _state(path: Path, *, fresh: bool, check: bool) -> str:
    """Return what becomes of a file, or what it is found to be."""
    if fresh:
        return "fresh"
    if not check:
        return "written"
    return "stale" if path.exists() else "missing"


def _end(path: Path, state: str, again: str) -> None:
    """Say what became of a file, and fail if it is not as it should be."""
    wrong = state in ("stale", "missing")
    note(f"{path} is {state}; run `{again}`" if wrong else f"{path} {_SAID[state]}")
    if wrong:
        raise typer.Exit(FAILED)


_SAID = {"fresh": "is fresh", "written": "written"}


def _diff(old: str, new: str, path: Path) -> list[str]:
    lines = (old.splitlines(), new.splitlines(), str(path), "as it is now")
    return [line.rstrip("\n") for line in difflib.unified_diff(*lines, lineterm="")]


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise typer.BadParameter(f"can't read {path}: {error.strerror}", param_hint="-o") from error
