"""``orchestrate schedule``: the next moments at which a pipeline runs by itself."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice

import typer

from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, say


def schedule(pipeline: str, count: int, after: str | None, *, as_json: bool) -> None:
    """Show the next moments; exit with 1 if the pipeline has no schedule."""
    from orchestration.pipeline.schedules.firing import differences, expression, fires, written

    begin = datetime.now(tz=UTC) if after is None else moment(after, "--after")
    loaded = named(pipeline).load()
    given = loaded.schedule_spec()
    if given is None:
        note(f"{loaded.name} has no schedule; `schedule: {{cron: 0 6 * * *}}` is one")
        raise typer.Exit(FAILED)
    moments = [*islice(fires(given, begin), count)]
    warnings = [problem.message for problem in differences(given)]
    if as_json:
        fields = {name: value for name, value in asdict(given).items() if name != "parameters"}
        document(
            {
                **fields,
                "eventbridge": expression(given),
                "next": [each.isoformat() for each in moments],
                "warnings": warnings,
            }
        )
        return
    say(f"{written(given)} in {given.timezone}, for EventBridge Scheduler {expression(given)}")
    if given.cron is not None and given.start is not None:
        say(f"from {given.start}")
    if given.end is not None:
        say(f"until {given.end}")
    for each in moments:
        say(f"{each:%a %Y-%m-%d %H:%M %z}  {each.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    if given.flexible_window_minutes is not None:
        say(f"each within the {given.flexible_window_minutes} minutes after; Airflow at once")
    if not moments:
        note(f"it does not run after {begin:%Y-%m-%d %H:%M} UTC any more")
    for text in warnings:
        note(f"warning: {text}")


def moment(text: str, option: str) -> datetime:
    """Read a time on the command line, in UTC unless it says otherwise."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"expected a time such as 2027-03-27T00:00Z, got {text!r}", param_hint=option
        ) from error
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
