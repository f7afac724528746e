"""Charts as HTML and SVG without scripts: points on two axes, and stacked bars.

Places are percentages of the width, and letters have one size: so a chart is as readable on a
phone and on paper as on a desk, which drawings of a fixed size are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from orchestration.planning.telling.axes import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value with a name, which shows when it is pointed at, tapped or reached by keyboard."""

    x: float
    y: float
    number: str
    """Written beside the point."""
    name: tuple[str, ...]
    """Lines."""
    low: float | None = None
    """Ends of the interval of `x`."""
    high: float | None = None
    special: bool = False
    """Drawn larger, and in another colour."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through places; `kind` is its class in the style sheet."""

    places: Sequence[tuple[float, float]]
    kind: str
    label: str = ""


def plot(points: Sequence[Point], lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Return points and lines on two axes."""
    body = [
        *_axes(x, y),
        *(part for line in lines for part in _line(line, x, y)),
        *(_interval(point, x, y) for point in points if point.low and point.high),
        *(_point(point, x, y) for point in points),
    ]
    return (
        f'<figure class="plot"><figcaption class="y">{escape(y.title)}</figcaption>'
        f'<svg role="img" aria-label="{escape(f"{y.title} against {x.title}")}">'
        f"{''.join(body)}</svg>"
        f'<figcaption class="x">{escape(x.title)}</figcaption></figure>'
    )


def _axes(x: Axis, y: Axis) -> Iterator[str]:
    for mark in x.marks:
        at = f"{x.at(mark):.2f}%"
        yield f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="100%"/>'
        yield f'<text class="mark" x="{at}" y="100%" dy="1.4em">{escape(x.form(mark))}</text>'
    for mark in y.marks:
        at = f"{100 - y.at(mark):.2f}%"
        text = escape(y.form(mark))
        yield f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>'
        yield f'<text class="mark left" x="0" dx="-.5em" y="{at}" dy=".35em">{text}</text>'


def _line(line: Line, x: Axis, y: Axis) -> Iterator[str]:
    places = [(x.at(across), 100 - y.at(up)) for across, up in line.places]
    for (x1, y1), (x2, y2) in pairwise(places):
        ends = f'x1="{x1:.2f}%" y1="{y1:.2f}%" x2="{x2:.2f}%" y2="{y2:.2f}%"'
        yield f'<line class="{line.kind}" {ends}/>'
    if line.label:
        across, up = places[-1]
        side = "end" if across > 50 else "start"
        shift = "-.4em" if across > 50 else ".4em"
        yield (
            f'<text class="label" x="{across:.2f}%" y="{up:.2f}%" dx="{shift}" dy="1em" '
            f'text-anchor="{side}">{escape(line.label)}</text>'
        )


def _interval(point: Point, x: Axis, y: Axis) -> str:
    low, high = (x.at(end or point.x) for end in (point.low, point.high))
    up = f"{100 - y.at(point.y):.2f}%"
    return f'<line class="interval" x1="{low:.2f}%" x2="{high:.2f}%" y1="{up}" y2="{up}"/>'


def _point(point: Point, x: Axis, y: Axis) -> str:
    across, up = x.at(point.x), 100 - y.at(point.y)
    place = f'x="{across:.2f}%" y="{up:.2f}%"'
    side, shift = ("end", "-1em") if across > 50 else ("start", "1em")
    # Lines of a name go away from the nearer edge.
    first = 1.6 if up < 50 else -0.6 - 1.2 * (len(point.name) - 1)
    name = "".join(
        f'<text class="name" {place} dx="{shift}" dy="{first + 1.2 * row:.1f}em" '
        f'text-anchor="{side}">{escape(text)}</text>'
        for row, text in enumerate(point.name)
    )
    kind = "point special" if point.special else "point"
    return (
        f'<g class="{kind}" tabindex="0" role="img" aria-label="{escape(", ".join(point.name))}">'
        f'<circle cx="{across:.2f}%" cy="{up:.2f}%" r="{8 if point.special else 6}"/>'
        f'<text class="number" {place} dy="-.9em">{escape(point.number)}</text>{name}</g>'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of parts, each with its name."""

    label: str
    total: str
    """Written after the label."""
    parts: Sequence[tuple[str, float]]


def bars(rows: Sequence[Bar], unit: str, limit: float | None = None, whole: float = 0) -> str:
    """Return stacked bars on one scale, and a legend with the values of the first.

    `limit` is drawn as a line; the scale ends at `whole`, or at the longest bar.
    """
    end = max([whole, limit or 0, *(sum(value for _, value in row.parts) for row in rows)])
    names = list(dict.fromkeys(name for row in rows for name, value in row.parts if value > 0))
    colours = {name: f"c{number % _COLOURS}" for number, name in enumerate(names)}
    line = "" if limit is None else f'<i class="limit" style="left:{100 * limit / end:.2f}%"></i>'
    drawn = (
        f'<div class="bar"><span>{escape(row.label)}</span><b>{escape(row.total)}</b>'
        f'<div class="track">{"".join(_parts(row, colours, unit, end))}{line}</div></div>'
        for row in rows
    )
    values = dict(rows[0].parts)
    keys = (
        f'<li><i class="{colours[name]}"></i>{escape(name)}'
        f" {escape(_amount(values[name], unit)) if values.get(name) else ''}</li>"
        for name in names
    )
    return f'<figure class="bars">{"".join(drawn)}<ul>{"".join(keys)}</ul></figure>'


_COLOURS: Final = 9
"""Classes of colours in the style sheet."""


def _parts(row: Bar, colours: dict[str, str], unit: str, end: float) -> Iterator[str]:
    for name, value in row.parts:
        if value > 0:
            title = escape(f"{name} {_amount(value, unit)}")
            width = f"{100 * value / end:.2f}%"
            yield f'<span class="{colours[name]}" style="width:{width}" title="{title}"></span>'


def _amount(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 99.5 else f"{value:.2g} {unit}"
