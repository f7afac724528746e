"""``orchestrate watch``: a run as it goes on, on a terminal, in lines or as a page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from orchestration.cli.commands.deployed.board import board
from orchestration.cli.commands.deployed.changes import Changes
from orchestration.cli.commands.deployed.places import Place
from orchestration.cli.commands.deployment import MODULES, session_of
from orchestration.cli.naming import named
from orchestration.cli.output import (
    FAILED,
    INTERRUPTED,
    LOST,
    console,
    note,
    note_failure,
    require,
    say,
)
from orchestration.errors import StartError

if TYPE_CHECKING:
    from orchestration.runs import Snapshot

Show = Callable[["Snapshot"], None]
_TRIES: Final = 5
"""Looks in a row that may fail before a run is given up."""
_LATE_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The ways in which a run is shown."""

    every_s: float
    lines: int
    page: bool
    port: int
    as_json: bool


def watch(pipeline: str, run_id: str, shown: Shown, place: Place) -> None:
    """Show a run until it ends; exit with 1 where it failed, with 3 where that is not known."""
    loaded = named(pipeline).load()
    require(MODULES, what="watching runs")
    from orchestration.runs import Jobs, Logs, Watch

    run = place.runs(loaded).watched(loaded, run_id)
    session = session_of(place.region or loaded.region, place.profile)
    jobs = Jobs(loaded, session.client("sagemaker"))
    logs = Logs(session.client("logs"))
    watched = Watch(run, jobs, logs, region=session.region_name, lines=shown.lines)
    last: Snapshot | None = None
    try:
        with _shown(shown) as show:
            for last in looks(watched.look, shown.every_s):
                show(last)
    except KeyboardInterrupt as error:
        # The end of the run may be known, and only its page be waited for.
        if last is None or last.state == "running":
            note("interrupted; the run goes on")
            raise typer.Exit(INTERRUPTED) from error
    if last is not None and last.state == "failed":
        note_failure(f"run {last.run} failed", last.error, last.cause)
        raise typer.Exit(FAILED)


def looks(look: Callable[[], Snapshot], every_s: float) -> Iterator[Snapshot]:
    """Yield the states of a run until its end."""
    snapshot = look()
    while snapshot.state == "running":
        yield snapshot
        time.sleep(every_s)
        snapshot = _again(look, every_s)
    if snapshot.has_just_ended:
        # CloudWatch gets the last lines of a log late; without them, the end is known all the same.
        with suppress(StartError, KeyboardInterrupt):
            time.sleep(min(every_s, _LATE_S))
            snapshot = look()
    yield snapshot


def _again(look: Callable[[], Snapshot], every_s: float) -> Snapshot:
    """Look at a run that was seen before: what does not work may work the next time."""
    for _ in range(_TRIES - 1):
        try:
            return look()
        except StartError as error:
            note(f"{error}; looking again in {every_s:g} s")
        time.sleep(every_s)
    try:
        return look()
    except StartError as error:
        note(f"error: {error}; the run is left alone, and what becomes of it is not known")
        raise typer.Exit(LOST) from error


@contextmanager
def _shown(shown: Shown) -> Iterator[Show]:
    """Yield what shows a snapshot: on standard output, and on the page if there is one."""
    if not shown.page:
        with _printed(as_json=shown.as_json) as printed:
            yield printed
        return
    from orchestration.cli.commands.deployed.serving import served

    with served(shown.port, every_s=shown.every_s) as page:
        note(f"the page is {page.url} until this command ends")
        with _printed(as_json=shown.as_json) as printed:

            def both(snapshot: Snapshot) -> None:
                page.change(snapshot)
                printed(snapshot)

            yield both


@contextmanager
def _printed(*, as_json: bool) -> Iterator[Show]:
    screen = console()
    if as_json:
        yield lambda snapshot: say(json.dumps(snapshot.to_json(), ensure_ascii=False))
    elif not screen.is_terminal or screen.is_dumb_terminal:
        changes = Changes()
        yield lambda snapshot: _say(changes.of(snapshot))
    else:
        from rich.live import Live

        with Live(console=screen, auto_refresh=False) as live:
            yield lambda snapshot: live.update(board(snapshot), refresh=True)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
