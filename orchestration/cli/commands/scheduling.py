"""``orchestrate schedule``: the next moments at which a pipeline runs by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import typer

from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, say


def schedule(pipeline: str, count: int, after: str | None, *, as_json: bool) -> None:
    """Show the next moments; exit with 1 if the pipeline has no schedule."""
    from orchestration.pipeline.schedules import cron
    from orchestration.pipeline.schedules.firing import differences, times

    begin = datetime.now(tz=UTC) if after is None else _moment(after)
    loaded = named(pipeline).load()
    given = loaded.schedule
    if given is None:
        note(f"{loaded.name} has no schedule; `schedule: {{cron: 0 6 * * *}}` is one")
        raise typer.Exit(FAILED)
    moments = [*islice(times(given.cron, given.timezone, begin), count)]
    theirs = cron.eventbridge(given.cron)
    warnings = [problem.message for problem in differences(given.cron, given.timezone)]
    if as_json:
        document(
            {
                "cron": given.cron,
                "timezone": given.timezone,
                "eventbridge": theirs,
                "next": [moment.isoformat() for moment in moments],
                "warnings": warnings,
            }
        )
        return
    say(f"{given.cron} in {given.timezone}, for EventBridge Scheduler {theirs}")
    for moment in moments:
        say(f"{moment:%a %Y-%m-%d %H:%M %z}  {moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    for text in warnings:
        note(f"warning: {text}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"expected a time such as 2027-03-27T00:00Z, got {text!r}", param_hint="--after"
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
