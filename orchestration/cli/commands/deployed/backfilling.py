"""``orchestrate backfill``: runs for times of the schedule that are over."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli import values
from orchestration.cli.commands.changing import Consent
from orchestration.cli.commands.deployment import MODULES, session_to_change
from orchestration.cli.commands.scheduling import moment
from orchestration.cli.naming import named
from orchestration.cli.output import document, note, require, say

if TYPE_CHECKING:
    from orchestration.cli.commands.deployed.places import Place
    from orchestration.deploy.executions.backfilling import Fire
    from orchestration.pipeline import Pipeline
    from orchestration.runs.airflow import Api
    from orchestration.runs.airflow.backfills import Wanted


def airflow(
    pipeline: str, since: str | None, until: str | None, *, at_most: int, as_json: bool
) -> None:
    """Print the command of Airflow that does it."""
    from orchestration.deploy.executions.backfilling import check_number, fires_between

    loaded = named(pipeline).load()
    check_number(loaded, at_most)
    fires = fires_between(loaded, *_span(loaded, since, until))
    command = _of_airflow(loaded, fires, at_most)
    if as_json:
        document({"pipeline": loaded.name, "fires": [_data(each) for each in fires]} | command)
    elif command["command"]:
        say(shlex.join(command["command"]))
    else:
        note("the schedule has no time then")


def by_airflow(
    pipeline: str,
    since: str | None,
    until: str | None,
    parameters: Sequence[str],
    *,
    at_most: int,
    place: Place,
    consent: Consent,
) -> None:
    """Let Airflow make the runs that are missing, or show what it would make."""
    from orchestration.deploy.events.missed import run_of
    from orchestration.deploy.executions.backfilling import check_number, fires_between
    from orchestration.runs.airflow import backfills

    loaded = named(pipeline).load()
    check_number(loaded, at_most)
    begin, end = _span(loaded, since, until)
    fires = fires_between(loaded, begin, min(end, datetime.now(tz=UTC)))
    wanted = _wanted(loaded, fires, parameters, at_most) if fires else None
    api = place.api()
    note(f"Airflow at {place.url}")
    times = () if wanted is None else backfills.missing(api, wanted)
    if not consent.as_json:
        for each in times:
            say(f"would start {run_of(loaded.name, each)}")
    created = None
    if wanted is None or not times:
        note("nothing to start")
    elif not consent.dry_run:
        consent.ask(f"start {len(times)} runs of {loaded.name}, {at_most} at a time")
        created = _created(api, wanted, consent)
    if consent.as_json:
        document(
            {
                "pipeline": loaded.name,
                "fires": [_data(each) for each in fires],
                "missing": [each.isoformat() for each in times],
                "backfill": created,
            }
        )


def _wanted(
    pipeline: Pipeline, fires: Sequence[Fire], parameters: Sequence[str], at_most: int
) -> Wanted:
    from orchestration.runs.airflow.backfills import Wanted

    specs = pipeline.parameter_specs()
    return Wanted(
        dag=pipeline.name,
        first=fires[0].time,
        last=fires[-1].time,
        at_most=at_most,
        values=values.parameters(specs, parameters, filled=[spec.name for spec in specs]),
    )


def _created(api: Api, wanted: Wanted, consent: Consent) -> int:
    from orchestration.runs.airflow import backfills

    if backfills.is_paused(api, wanted.dag):
        note(f"warning: DAG {wanted.dag} is paused: its runs wait")
    created = backfills.create(api, wanted)
    consent.report(f"back-fill {created} of {wanted.dag}")
    return created


def _span(pipeline: Pipeline, since: str | None, until: str | None) -> tuple[datetime, datetime]:
    """Return the times that are meant; by default from the schedule's start until now."""
    end = datetime.now(tz=UTC) if until is None else moment(until, "--to")
    if since is not None:
        return moment(since, "--from"), end
    schedule = pipeline.schedule_spec()
    if schedule is not None and schedule.start is not None:
        return datetime.fromisoformat(schedule.start), end
    raise typer.BadParameter("is missing, as the schedule has no start", param_hint="--from")


def _of_airflow(pipeline: Pipeline, fires: Sequence[Fire], at_most: int) -> dict[str, list[str]]:
    if not fires:
        return {"command": []}
    first, last = (each.time.astimezone(UTC).isoformat() for each in (fires[0], fires[-1]))
    command = ["airflow", "backfill", "create", "--dag-id", pipeline.name, "--from-date", first]
    return {"command": [*command, "--to-date", last, "--max-active-runs", str(at_most)]}


def step_functions(
    pipeline: str,
    since: str | None,
    until: str | None,
    parameters: Sequence[str],
    *,
    at_most: int,
    region: str | None,
    profile: str | None,
    consent: Consent,
) -> None:
    """Start the runs that are missing, or show what would be started."""
    loaded = named(pipeline).load()
    require(MODULES, what="starting executions")
    from orchestration.deploy.account import Account
    from orchestration.deploy.executions import backfilling
    from orchestration.deploy.executions.passing import passing

    backfilling.check_number(loaded, at_most)
    begin, end = _span(loaded, since, until)
    times = backfilling.fires_between(loaded, begin, min(end, datetime.now(tz=UTC)))
    session = session_to_change(loaded, region, profile)
    fires = backfilling.looked_up(loaded, times, session=session)
    missing = [each for each in fires if each.execution is None]
    given = dict(backfilling.values_of(loaded, session))
    given |= values.parameters(loaded.parameter_specs(), parameters, filled=given)
    passing(loaded, given, Account.of(session))
    started: tuple[Fire, ...] = ()
    if not consent.as_json:
        _show(fires)
    if missing and not consent.dry_run:
        consent.ask(f"start {len(missing)} runs of {loaded.name}, {at_most} at a time")
        started = backfilling.backfill(
            loaded,
            missing,
            given,
            session=session,
            at_most=at_most,
            on_start=lambda each: consent.report(f"{each.run}  {each.execution}"),
        )
    if consent.as_json:
        document(
            {
                "pipeline": loaded.name,
                "fires": [_data(each) for each in fires],
                "started": [_data(each) for each in started],
            }
        )


def _show(fires: Sequence[Fire]) -> None:
    for each in fires:
        if each.execution is None:
            say(f"would start {each.run}")
        else:
            name = ":".join(each.execution.split(":")[-2:])
            again = f"; `orchestrate rerun {name}` starts it again"
            failed = each.status not in ("RUNNING", "SUCCEEDED")
            say(f"is there     {each.run}  {each.status}{again if failed else ''}")
    if all(each.execution is not None for each in fires):
        note("nothing to start")


def _data(each: Fire) -> dict[str, Any]:
    return {
        "time": each.time.isoformat(),
        "run": each.run,
        "execution_arn": each.execution,
        "status": each.status,
    }
