"""The progress of a run: a live table on a terminal, lines everywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestration.cli.output import console, note

if TYPE_CHECKING:
    from rich.table import Table

    from orchestration.direct.progress import OnProgress, Progress, StepState

_REFRESH_PER_S = 8
MARKS = {"running": "…", "succeeded": "✓", "failed": "✗", "skipped": "–"}
STYLES = {"running": "cyan", "succeeded": "green", "failed": "bold red", "skipped": "dim"}


class Board:
    """The stages of a run, each with its current step and duration."""

    def __init__(self, title: str, stages: Sequence[str]) -> None:
        self._title = title
        self._steps: dict[str, dict[str, StepState]] = {stage: {} for stage in stages}
        self._began: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def change(self, progress: Progress) -> None:
        """Record a change of a step."""
        steps = self._steps.setdefault(progress.stage, {})
        steps[progress.step] = progress.state
        now = time.monotonic()
        if progress.state != "skipped":
            self._began.setdefault(progress.stage, now)
            self._ended[progress.stage] = now

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=self._title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for heading in ("", "stage", "step", "seconds"):
            right, width = heading == "seconds", 14 if heading == "step" else None
            table.add_column(heading, justify="right" if right else "left", min_width=width)
        for stage, steps in self._steps.items():
            state = _together(list(steps.values()))
            running = [step for step, its in steps.items() if its == "running"]
            table.add_row(
                MARKS.get(state, " "),
                stage,
                ", ".join(step.partition(".")[2] for step in running[:2]),
                self._seconds(stage, going=state == "running"),
                style=STYLES.get(state, "dim"),
            )
        return table

    def _seconds(self, stage: str, *, going: bool) -> str:
        if stage not in self._began:
            return ""
        end = time.monotonic() if going else self._ended[stage]
        return f"{end - self._began[stage]:.1f}"


@contextmanager
def following(title: str, stages: Sequence[str], *, live: bool = True) -> Iterator[OnProgress]:
    """Show the progress of a run on standard error; ``live``: by a table, on a terminal."""
    screen = console(err=True)
    if not live or not screen.is_terminal or screen.is_dumb_terminal:
        note(title)
        yield _Lines().change
        return
    from rich.live import Live

    board = Board(title, stages)
    with Live(board, console=screen, refresh_per_second=_REFRESH_PER_S):
        yield board.change


class _Lines:
    """Print a line for each step that begins, and for each that fails."""

    def __init__(self) -> None:
        self._said: set[tuple[str, bool]] = set()

    def change(self, progress: Progress) -> None:
        """Record a change of a step."""
        failed = progress.state == "failed"
        what = (progress.step, failed)
        if progress.state != "skipped" and what not in self._said:
            self._said.add(what)
            note(f"{progress.elapsed_s:7.1f}s  {progress.step}{' failed' if failed else ''}")


def _together(states: list[StepState]) -> str:
    for state in ("running", "failed", "succeeded", "skipped"):
        if state in states:
            return state
    return ""
