"""The progress of a run: a live table on a terminal, lines everywhere else."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from orchestration.cli.output import console, note

if TYPE_CHECKING:
    from rich.table import Table

    from orchestration.direct.progress import Progress, StepState
    from orchestration.local.run.working import Working

_REFRESH_PER_S = 8
_TOLD_EVERY_S: Final = 2.0
"""Seconds between two lines about one job; a checkpoint is told at once."""
_LOG_EVERY_S: Final = 10.0
"""The same of a job whose log has no metrics: its last line is told."""
_WIDTH: Final = 100
"""Characters of a job's line that are shown."""
_CONTROL: Final = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\^_]|[\x00-\x1f\x7f-\x9f]"
)
"""Sequences for a terminal, as of bars and coloured logs, and other control characters."""
MARKS = {"running": "…", "succeeded": "✓", "failed": "✗", "skipped": "–"}
STYLES = {"running": "cyan", "succeeded": "green", "failed": "bold red", "skipped": "dim"}


class Shown(Protocol):
    """A display of a run."""

    def change(self, progress: Progress) -> None:
        """Show a change of a step."""

    def work(self, working: Working) -> None:
        """Show how far a job is."""


class Board:
    """The stages of a run, each with its current step, how far its job is, and its duration."""

    def __init__(self, title: str, stages: Sequence[str]) -> None:
        self._title = title
        self._steps: dict[str, dict[str, StepState]] = {stage: {} for stage in stages}
        self._began: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._working: dict[str, Working] = {}

    def change(self, progress: Progress) -> None:
        """Record a change of a step."""
        steps = self._steps.setdefault(progress.stage, {})
        steps[progress.step] = progress.state
        now = time.monotonic()
        if progress.state != "skipped":
            self._began.setdefault(progress.stage, now)
            self._ended[progress.stage] = now

    def work(self, working: Working) -> None:
        """Record how far a job is."""
        self._working[working.stage] = working

    def __rich__(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self._title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for heading in ("", "stage", "step", "seconds", ""):
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
                Text(_text(self._working[stage])) if stage in self._working else "",
                style=STYLES.get(state, "dim"),
            )
        return table

    def _seconds(self, stage: str, *, going: bool) -> str:
        if stage not in self._began:
            return ""
        end = time.monotonic() if going else self._ended[stage]
        return f"{end - self._began[stage]:.1f}"


@contextmanager
def following(title: str, stages: Sequence[str], *, live: bool = True) -> Iterator[Shown]:
    """Show the progress of a run on standard error; ``live``: by a table, on a terminal."""
    screen = console(err=True)
    if not live or not screen.is_terminal or screen.is_dumb_terminal:
        note(title)
        yield _Lines()
        return
    from rich.live import Live

    board = Board(title, stages)
    with Live(board, console=screen, refresh_per_second=_REFRESH_PER_S):
        yield board


class _Lines:
    """Print a line for each step that begins or fails, and now and then how far a job is."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._said: set[tuple[str, bool]] = set()
        self._told: dict[str, tuple[float, Working]] = {}

    def change(self, progress: Progress) -> None:
        """Record a change of a step."""
        # The run began when it says so, not when this display did.
        self._began = time.monotonic() - progress.elapsed_s
        failed = progress.state == "failed"
        what = (progress.step, failed)
        if progress.state != "skipped" and what not in self._said:
            self._said.add(what)
            note(f"{progress.elapsed_s:7.1f}s  {progress.step}{' failed' if failed else ''}")

    def work(self, working: Working) -> None:
        """Record how far a job is."""
        now = time.monotonic()
        at, before = self._told.get(working.job, (self._began, None))
        is_new = before is None or working.checkpoint != before.checkpoint
        least = _TOLD_EVERY_S if working.metrics else _LOG_EVERY_S
        text = _text(working)
        if not text or (before and text == _text(before)):
            return
        if now - at >= least or (is_new and (working.metrics or working.checkpoint)):
            self._told[working.job] = now, working
            others = [job for job, (_, told) in self._told.items() if told.stage == working.stage]
            which = f"{working.stage}, {working.job}" if len(others) > 1 else working.stage
            note(f"{now - self._began:7.1f}s  {which}: {text}")


def _text(working: Working) -> str:
    """Return how far a job is, in a line."""
    parts = [f"{name}={value:.4g}" for name, value in working.metrics.items()]
    if working.checkpoint:
        parts.append(f"checkpoint {working.checkpoint}")
    return (", ".join(parts) or _CONTROL.sub("", working.line).strip())[:_WIDTH]


def _together(states: list[StepState]) -> str:
    for state in ("running", "failed", "succeeded", "skipped"):
        if state in states:
            return state
    return ""
