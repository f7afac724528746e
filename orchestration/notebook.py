"""Results as notebooks show them: HTML that needs no style sheet and runs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_TEXT: Final = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def block(title: str, *parts: str) -> str:
    """Return parts of HTML below a title; the title is text."""
    return f"<div><p><b>{escape(title)}</b></p>{''.join(parts)}</div>"


def line(text: str) -> str:
    """Return a text as a paragraph, with its line ends."""
    return f'<p style="white-space:pre-wrap">{escape(text)}</p>'


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts and numbers; nothing of none."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(f'<th style="{_TEXT}">{escape(name)}</th>' for name in headings)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def seconds(duration_s: float | None) -> str:
    """Return a duration for a cell of a table; empty where it is not known."""
    return "" if duration_s is None else f"{duration_s:.1f} s"


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f'<td style="{_TEXT};white-space:pre-wrap">{escape(text)}</td>'
