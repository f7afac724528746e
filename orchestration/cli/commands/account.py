"""``orchestrate run --aws``: a pipeline run from this process, in an account at AWS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cli import values
from orchestration.cli.commands.costs.billing import account_of, told
from orchestration.cli.commands.deployment import new_session, session_to_run
from orchestration.cli.commands.rendering import Driver, locked
from orchestration.cli.commands.running import terminable
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, console, document, note, note_failure, require
from orchestration.cli.progress import following
from orchestration.cli.questions import Replies
from orchestration.cli.run_file import pipeline_here
from orchestration.errors import StartError

if TYPE_CHECKING:
    from rich.table import Table

    from orchestration.direct import Outcome
    from orchestration.pipeline import Pipeline
    from orchestration.pricing import Line

_WITHOUT: Final = "what an earlier process of the run made, transfers, requests and logs"


@dataclass(frozen=True, slots=True)
class Profile:
    """A session that reads credentials anew for each client, so that a new login is noticed."""

    name: str | None
    region: str | None

    def client(self, service_name: str, /, *, config: Any) -> Any:
        """Return a client for a service, with credentials as they are now."""
        return new_session(self.region, self.name).client(service_name, config=config)


def check_options(
    driver: Driver, uploads: Sequence[str], *, keep: bool, report: Path | None, watch: bool
) -> None:
    """Refuse what only the embedded AWS can do."""
    if driver is not Driver.DIRECT:
        raise typer.BadParameter(
            "in your own account a pipeline is run directly; to run it there on Airflow or Step "
            "Functions, deploy it",
            param_hint="--on",
        )
    if uploads:
        raise typer.BadParameter(
            "is for the embedded AWS; put data into your own account with `aws s3 cp`",
            param_hint="--upload",
        )
    if watch:
        raise typer.BadParameter(
            "is for the embedded AWS: every change would start paid jobs", param_hint="--watch"
        )
    if keep or report is not None:
        raise typer.BadParameter(
            "is for the embedded AWS; in your own account logs and objects stay, and "
            "`orchestrate logs` prints those of a stage",
            param_hint="--keep" if keep else "--report",
        )


def run(
    pipeline: str | None,
    parameters: Sequence[str],
    *,
    run_id: str | None,
    region: str | None,
    profile: str | None,
    replies: Replies,
    as_json: bool,
) -> None:
    """Run it, show what it came to, and exit with 1 where it failed."""
    which = named(pipeline or pipeline_here())
    loaded = which.load()
    given = values.parameters(loaded.parameter_specs(), parameters)
    require({"boto3": "aws"}, what="running pipelines in your account")
    locked(which)
    session = session_to_run(loaded, given, region, profile)
    from orchestration.direct.pipelines import new_run_id, outcome_of
    from orchestration.pricing.acquired import of_run

    name = run_id or new_run_id()
    title = f"{loaded.name}, run {name}"
    stages = [stage.name for stage in loaded.every_stage]
    person = replies.person(loaded.lower(), alone=False)
    with terminable(), following(title, stages, live=person is None) as shown:
        outcome = outcome_of(
            loaded,
            given,
            session=Profile(profile, region or loaded.region),
            run_id=name,
            on_progress=shown.change,
            on_question=person,
        )
    lines = _billed(loaded, name, profile, region)
    lines += of_run(loaded.lower(), session.region_name, given, outcome.steps)
    if as_json:
        document({**outcome.to_json(), "billed": [line.data() for line in lines]})
    else:
        console().print(_table(outcome))
        for text in told(lines, without=_WITHOUT) if lines else ():
            note(text)
    if outcome.state == "failed":
        note_failure(f"run {name} of {outcome.workflow} failed", outcome.error, outcome.cause)
        raise typer.Exit(FAILED)


def _billed(pipeline: Pipeline, run: str, profile: str | None, region: str | None) -> list[Line]:
    """Return what the jobs of a run were billed; nothing where that can't be read."""
    try:
        return account_of(pipeline, region, profile).billed(run)
    except StartError as error:
        note(f"what its jobs were billed is not known: {error}")
        return []


def _table(outcome: Outcome) -> Table:
    """Show the steps that the run reached, and their seconds."""
    from rich.table import Table

    table = Table(
        title=f"{outcome.workflow}, run {outcome.run_id}: {outcome.state}", title_justify="left"
    )
    for heading in ("step", "state", "seconds"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for step in outcome.steps:
        seconds = "" if step.duration_s is None else f"{step.duration_s:.1f}"
        table.add_row(step.step, step.state, seconds)
    return table
