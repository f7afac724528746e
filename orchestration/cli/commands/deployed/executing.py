"""``orchestrate start``, ``runs``, ``stop`` and ``rerun``: runs of a deployed pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orchestration.cli import values
from orchestration.cli.commands.deployment import MODULES, session_of
from orchestration.cli.naming import deployed, named
from orchestration.cli.output import console, document, note, require, say

if TYPE_CHECKING:
    from orchestration.deploy.executions import Listed


def start(
    pipeline: str,
    parameters: Sequence[str],
    *,
    run_id: str | None,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Start an execution of a deployed pipeline."""
    loaded = named(pipeline).load()
    chosen = values.parameters(loaded.parameter_specs(), parameters)
    require(MODULES, what="starting executions")
    from orchestration.deploy.executions import start as start_one

    session = session_of(region or loaded.region, profile)
    started = start_one(loaded, chosen, session=session, run=run_id)
    for text in started.warnings:
        note(f"warning: {text}")
    if as_json:
        document({"execution_arn": started.arn, "warnings": list(started.warnings)})
    else:
        say(started.arn)


def runs(
    pipeline: str, *, most: int, region: str | None, profile: str | None, as_json: bool
) -> None:
    """List the executions of a deployed pipeline."""
    name, own_region = deployed(pipeline)
    require(MODULES, what="listing executions")
    from orchestration.deploy.executions import listed

    found = listed(name, session=session_of(region or own_region, profile), most=most)
    if as_json:
        document({"pipeline": name, "runs": [_as_json(each) for each in found]})
    elif found:
        _print(found)
    else:
        note(f"no runs of {name}")


def _print(found: Sequence[Listed]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("execution", "state", "started (UTC)", "took", "error"):
        table.add_column(heading, overflow="fold")
    for each in found:
        why = f"{each.error}: {each.cause}" if each.error else ""
        began = f"{each.started.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        cells = (each.name, each.status, began, _took(each), why)
        table.add_row(*map(escape, cells))
    console().print(table)


def _took(each: Listed) -> str:
    seconds = round(((each.ended or datetime.now(UTC)) - each.started).total_seconds())
    hours, rest = divmod(max(0, seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


def _as_json(each: Listed) -> dict[str, Any]:
    return {
        "execution_arn": each.arn,
        "status": each.status,
        "started": each.started.isoformat(),
        "ended": None if each.ended is None else each.ended.isoformat(),
        "error": each.error,
        "cause": each.cause,
    }


def stop(execution: str, *, region: str | None, profile: str | None, as_json: bool) -> None:
    """Stop an execution and clean up after it."""
    require(MODULES, what="stopping executions")
    from orchestration.deploy.executions import stop as stop_one

    stopped = stop_one(execution, session=session_of(region or _region(execution), profile))
    if as_json:
        document({"execution_arn": stopped.arn, "was_running": stopped.was_running})
        return
    what = "stopped" if stopped.was_running else "had ended"
    note(f"execution {stopped.arn} {what}; what it had started is stopped and deleted")


def rerun(execution: str, *, region: str | None, profile: str | None, as_json: bool) -> None:
    """Start a failed execution again, as the next attempt at its run."""
    require(MODULES, what="starting executions")
    from orchestration.deploy import rerun as start_again

    note("the companion of the state machine cleans up first; this takes a minute or two")
    started = start_again(execution, session=session_of(region or _region(execution), profile))
    if as_json:
        document({"execution_arn": started.arn, "attempt": started.attempt, "run": started.run})
        return
    note(f"attempt {started.attempt} at run {started.run}")
    say(started.arn)


def _region(execution: str) -> str | None:
    """Return the region in an execution's ARN."""
    return execution.split(":")[3] if execution.count(":") > 3 else None
