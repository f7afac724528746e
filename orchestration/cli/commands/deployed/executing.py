"""``orchestrate start``, ``runs``, ``stop`` and ``rerun``: runs of a deployed pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orchestration.cli import values
from orchestration.cli.commands.deployed.places import Place
from orchestration.cli.commands.deployed.wording import duration
from orchestration.cli.naming import deployed, named, of_run
from orchestration.cli.output import console, document, note, say

if TYPE_CHECKING:
    from orchestration.runs import Listed


def start(
    pipeline: str, parameters: Sequence[str], *, run_id: str | None, place: Place, as_json: bool
) -> None:
    """Start a run of a deployed pipeline."""
    loaded = named(pipeline).load()
    chosen = values.parameters(loaded.parameter_specs(), parameters)
    runs_there = place.runs(loaded, to_change=True)
    started = runs_there.start(loaded, chosen, run_id)
    for text in started.warnings:
        note(f"warning: {text}")
    if as_json:
        document({runs_there.id_key: started.id, "warnings": list(started.warnings)})
    else:
        say(started.id)


def runs(pipeline: str, *, most: int, place: Place, as_json: bool) -> None:
    """List the runs of a deployed pipeline."""
    known = deployed(pipeline)
    runs_there = place.runs(known)
    found = runs_there.listed(most)
    if as_json:
        shown = [{runs_there.id_key: each.id, **_as_json(each)} for each in found]
        document({"pipeline": known.name, "runs": shown})
    elif found:
        _print(found)
    else:
        note(f"no runs of {known.name}")


def _print(found: Sequence[Listed]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from orchestration.explanations import hint

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("run", "state", "started (UTC)", "took", "error"):
        table.add_column(heading, overflow="fold")
    for each in found:
        why = f"{each.error}: {each.cause}" if each.error else each.cause
        began = f"{each.started.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if each.started else ""
        cells = (each.name, each.status, began, _took(each), why)
        table.add_row(*map(escape, cells))
    console().print(table)
    for command in dict.fromkeys(hint(each.error) for each in found):
        if command is not None:
            note(f"what to do: {command}")


def _took(each: Listed) -> str:
    if each.started is None:
        return ""
    return duration(((each.ended or datetime.now(UTC)) - each.started).total_seconds())


def _as_json(each: Listed) -> dict[str, Any]:
    return {
        "status": each.status,
        "started": None if each.started is None else each.started.isoformat(),
        "ended": None if each.ended is None else each.ended.isoformat(),
        "error": each.error,
        "cause": each.cause,
    }


def stop(run: str, *, place: Place, as_json: bool) -> None:
    """Stop a run and clean up after it."""
    runs_there = place.runs(of_run(run), to_change=True)
    stopped = runs_there.stop(run)
    if as_json:
        document({runs_there.id_key: stopped.id, "was_running": stopped.was_running})
        return
    note(f"{place.ended(stopped)}")


def rerun(run: str, *, place: Place, as_json: bool) -> None:
    """Start a failed run again."""
    runs_there = place.runs(of_run(run), to_change=True)
    place.announce_rerun()
    again = runs_there.rerun(run)
    if as_json:
        attempt = {} if again.attempt is None else {"attempt": again.attempt}
        document({runs_there.id_key: again.id, **attempt, "run": again.run})
        return
    if again.attempt is not None:
        note(f"attempt {again.attempt} at run {again.run}")
    say(again.id)
