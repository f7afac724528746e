"""Stages as an SVG picture: boxes in rows, each below what it waits for; no browser is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final, Literal

from orchestration.refs import Ref

if TYPE_CHECKING:
    from orchestration.stages import Stage

State = Literal["succeeded", "failed", "skipped", "not reached", "waiting", "running", ""]

_WIDTH: Final = 168
_HEIGHT: Final = 46
_APART: Final = 18
_BELOW: Final = 34
FONTS: Final = "system-ui, sans-serif"
_LONGEST: Final = 22
"""Letters of a name that fit into a box."""
_COLOURS: Final[Mapping[State, tuple[str, str]]] = {
    "succeeded": ("#e9f5ee", "#1b7f4b"),
    "failed": ("#fbe9e7", "#b3261e"),
    "skipped": ("#f5f6f8", "#8a929e"),
    "not reached": ("#fff", "#8a929e"),
    "waiting": ("#fff", "#8a929e"),
    "running": ("#eef4fb", "#2b6cb0"),
    "": ("#eef4fb", "#2b6cb0"),
}
"""Fill and outline by state; the last is that of a pipeline that has not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A stage in the picture."""

    name: str
    below: tuple[str, ...]
    """The stages that it waits for."""
    note: str = ""
    """A second line: its kind, or how it ended."""
    state: State = ""


def boxes(
    stages: Iterable[Stage], notes: Mapping[str, str], states: Mapping[str, State] | None = None
) -> list[Box]:
    """Return the boxes of stages, each below those that it refers to or waits for."""
    return [
        Box(
            name=stage.name,
            below=tuple(
                dict.fromkeys(
                    [*(n.stage for _, n in stage.references() if isinstance(n, Ref)), *stage.after]
                )
            ),
            note=notes.get(stage.name, ""),
            state=(states or {}).get(stage.name, ""),
        )
        for stage in stages
    ]


def svg(boxes: Sequence[Box], title: str) -> str:
    """Return the picture as an SVG element, which is a whole file as well."""
    rows = _rows(boxes)
    width = max(map(len, rows), default=1) * (_WIDTH + _APART) - _APART + 4
    height = max(len(rows), 1) * (_HEIGHT + _BELOW) - _BELOW + 4
    places = dict(_places(rows, width))
    body = [
        *(_edge(places[above], places[name]) for above, name in _edges(boxes)),
        *(_box(box, *places[box.name]) for box in boxes),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}" font-family="{FONTS}" font-size="13">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def _edges(boxes: Sequence[Box]) -> Iterator[tuple[str, str]]:
    """Yield who waits for whom, but for what follows from others."""
    below = {box.name: box.below for box in boxes}

    @cache
    def before(name: str) -> set[str]:
        own = {above for above in below[name] if above in below}
        return own.union(*map(before, own))

    for name, own in below.items():
        implied = set[str]().union(*(before(above) for above in own if above in below))
        for above in own:
            if above in below and above not in implied:
                yield above, name


def _rows(boxes: Sequence[Box]) -> list[list[str]]:
    """Return the names row by row: each box is below all that it waits for."""
    below = {box.name: box.below for box in boxes}
    depth: dict[str, int] = {}

    def found(name: str) -> int:
        if name not in depth:
            depth[name] = 0
            depth[name] = max(
                (found(above) + 1 for above in below[name] if above in below), default=0
            )
        return depth[name]

    rows: list[list[str]] = [[] for _ in range(max(map(found, below), default=-1) + 1)]
    for name in below:
        rows[depth[name]].append(name)
    return rows


def _places(rows: Sequence[Sequence[str]], width: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the left upper corner of each box; rows are centred."""
    for number, row in enumerate(rows):
        left = (width - (len(row) * (_WIDTH + _APART) - _APART)) / 2
        for column, name in enumerate(row):
            yield name, (left + column * (_WIDTH + _APART), 2 + number * (_HEIGHT + _BELOW))


def _edge(above: tuple[float, float], below: tuple[float, float]) -> str:
    x1, y1 = above[0] + _WIDTH / 2, above[1] + _HEIGHT
    x2, y2 = below[0] + _WIDTH / 2, below[1]
    bend = (y1 + y2) / 2
    path = f"M{x1:g} {y1:g}C{x1:g} {bend:g} {x2:g} {bend:g} {x2:g} {y2 - 5:g}"
    tip = f"M{x2 - 4:g} {y2 - 7:g}L{x2:g} {y2:g}L{x2 + 4:g} {y2 - 7:g}z"
    return f'<path d="{path}" fill="none" stroke="#8a929e"/><path d="{tip}" fill="#8a929e"/>'


def _box(box: Box, left: float, top: float) -> str:
    fill, outline = _COLOURS[box.state]
    dashes = ' stroke-dasharray="4 3"' if box.state == "not reached" else ""
    middle = left + _WIDTH / 2
    name = box.name if len(box.name) <= _LONGEST else f"{box.name[: _LONGEST - 1]}…"
    return (
        f'<g class="stage"><title>{escape(f"{box.name} {box.note}".strip())}</title>'
        f'<rect x="{left:g}" y="{top:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="{outline}"{dashes}/>'
        f'<text x="{middle:g}" y="{top + 20:g}" text-anchor="middle" font-weight="600" '
        f'fill="#1c2330">{escape(name)}</text>'
        f'<text x="{middle:g}" y="{top + 37:g}" text-anchor="middle" font-size="11" '
        f'fill="{outline}">{escape(box.note)}</text></g>'
    )
