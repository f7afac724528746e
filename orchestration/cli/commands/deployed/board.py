"""A run on a terminal: its stages, jobs and metrics, the ends of logs, time and dollars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchestration.cli.commands.deployed.wording import dollars, duration, figures, took
from orchestration.cli.progress import MARKS, STYLES

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from orchestration.runs import Snapshot, StageView

_LOGGED = ("InProgress", "Stopping", "Failed")
"""Jobs in these states show the end of their log."""


def board(snapshot: Snapshot) -> Group:
    """Draw a run; what users and scripts wrote is text, never markup."""
    from rich.console import Group
    from rich.text import Text

    title = Text(f"{snapshot.pipeline}, run {snapshot.run}: {snapshot.state}")
    figures_of_run = Text(f"{duration(snapshot.elapsed_s)}, {dollars(snapshot)}", style="dim")
    logs = [line for stage in snapshot.stages for line in _logs(stage)]
    return Group(title, figures_of_run, _stages(snapshot), *logs)


def _stages(snapshot: Snapshot) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("", "stage", "now", "took", "metrics"):
        table.add_column(heading, overflow="fold")
    for stage in snapshot.stages:
        doing = ", ".join(step.partition(".")[2] or step for step in stage.steps[:2])
        mark, now = MARKS.get(stage.state, " "), doing or stage.state
        cells = (mark, stage.name, now, took(stage, snapshot), "")
        table.add_row(*map(Text, cells), style=STYLES.get(stage.state, "dim"))
        for job in stage.jobs:
            reason = f": {job.reason}" if job.reason else ""
            cells = ("", f"  {job.name}", f"{job.phase}{reason}", "", figures(job.metrics))
            table.add_row(*map(Text, cells), style="dim" if job.status == "Completed" else "")
    return table


def _logs(stage: StageView) -> Iterator[Text]:
    for job in stage.jobs:
        if job.status in _LOGGED:
            yield from _log(job.name, job.log)
    for step, lines in stage.logs.items():
        yield from _log(step, lines)


def _log(name: str, lines: Sequence[str]) -> Iterator[Text]:
    from rich.text import Text

    if lines:
        yield Text(f"\n{name}:", style="bold")
    for line in lines:
        text = Text.from_ansi(line)
        text.overflow, text.no_wrap = "ellipsis", True
        yield text
