"""Two drawings in SVG: a metric by model, and an improvement with its interval."""

from __future__ import annotations

from html import escape
from typing import Callable, Mapping, Sequence

_WIDTH = 800
_LEFT = 60
_NAMED = 20
"""Models beyond this many have no name below their dot."""


def dots(points: Sequence[tuple[str, float, bool]], lines: Mapping[str, float | None]) -> str:
    """Draw a dot for each model, the best one filled, and a line for each number that is known."""
    marks = {name: value for name, value in lines.items() if value is not None}
    low, high = _range([*(value for _, value, _ in points), *marks.values()])
    top, bottom = 15.0, 215.0

    def height(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    named = len(points) <= _NAMED
    # Names lean to the right, so the last one needs room there.
    step = (_WIDTH - _LEFT - (140 if named else 40)) / max(1, len(points) - 1)
    drawn = _axis([low, (low + high) / 2, high], height)
    for name, value in marks.items():
        y = height(value)
        drawn.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#a86a00" '
            f'stroke-dasharray="5 4"/><text x="{_WIDTH}" y="{y - 4:.1f}" text-anchor="end">'
            f"{escape(name)} {value:.6g}</text>"
        )
    for number, (name, value, best) in enumerate(points):
        x, y = _LEFT + 20 + number * step, height(value)
        fill = "#1b7f4b" if best else "#fff"
        drawn.append(
            f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="#1b7f4b">'
            f"<title>{escape(name)}: {value:.6g}</title></circle>"
        )
        if named:
            drawn.append(
                f'<text transform="translate({x:.1f} 235) rotate(30)">{escape(name)}</text>'
            )
    height_px = 300 if named else 240
    return f'<svg id="metric" viewBox="0 0 {_WIDTH} {height_px}" role="img">{"".join(drawn)}</svg>'


def bars(improvement: float, interval: Mapping[str, float] | None, margin: float) -> str:
    """Draw the improvement over the champion, with its interval, beside 0 and the margin."""
    ends = [improvement, margin, 0.0]
    if interval is not None:
        ends += [interval["low"], interval["high"]]
    low, high = _range(ends)

    def across(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - 2 * _LEFT)

    drawn: list[str] = []
    names = {0.0: "no improvement"} if margin == 0 else {0.0: "champion", margin: "margin"}
    for value, name in names.items():
        x = across(value)
        drawn.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="70" stroke="#5b6472" '
            f'stroke-dasharray="4 3"/><text x="{x:.1f}" y="14" text-anchor="middle">{name}</text>'
        )
    if interval is not None:
        start, end = across(interval["low"]), across(interval["high"])
        drawn.append(
            f'<line class="interval" x1="{start:.1f}" x2="{end:.1f}" y1="45" y2="45" '
            'stroke="#1b7f4b" stroke-width="6" stroke-opacity="0.35"/>'
        )
    drawn.append(
        f'<circle class="improvement" cx="{across(improvement):.1f}" cy="45" r="6" '
        f'fill="#1b7f4b"/><text x="{across(improvement):.1f}" y="88" text-anchor="middle">'
        f"{improvement:+.6g}</text>"
    )
    return f'<svg id="improvement" viewBox="0 0 {_WIDTH} 96" role="img">{"".join(drawn)}</svg>'


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _axis(values: Sequence[float], height: Callable[[float], float]) -> list[str]:
    return [
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{height(v):.1f}" y2="{height(v):.1f}" '
        f'stroke="#e2e5ea"/><text x="{_LEFT - 6}" y="{height(v) + 4:.1f}" text-anchor="end">'
        f"{v:.4g}</text>"
        for v in values
    ]
