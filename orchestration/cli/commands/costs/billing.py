"""The dollars that jobs of runs were billed, and the hours that they took."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.commands.costs.estimating import price, usd
from orchestration.cli.commands.rendering import Backend
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, require, say
from orchestration.errors import StartError

if TYPE_CHECKING:
    from orchestration.cli.commands.deployed.places import Place
    from orchestration.pipeline import Pipeline
    from orchestration.pricing import Expected, Line
    from orchestration.runs import Jobs
    from orchestration.runs.besides import Besides
    from orchestration.runs.progress import Progress, Watched


def earlier(pipeline: str, region: str | None, profile: str | None) -> dict[str, Expected]:
    """Return the hours that jobs of earlier runs took, by stage; those that completed."""
    from orchestration.pricing.billed import billed_h, mean

    account = account_of(named(pipeline).load(), region, profile)
    hours: dict[str, list[float]] = {}
    for job in account.jobs.every():
        for kind, description in job.paid:
            took = billed_h(kind, description)
            if description[f"{kind.word}JobStatus"] == "Completed" and took is not None:
                hours.setdefault(job.stage, []).append(took)
    found = {stage: mean(took) for stage, took in hours.items()}
    if not found:
        note(f"no job of an earlier run of {account.jobs.pipeline.name} is in {account.region}")
    return {stage: expected for stage, expected in found.items() if expected is not None}


def billed(pipeline: str, run_id: str, place: Place, *, as_json: bool) -> None:
    """Show what a run was billed; exit with 1 if nobody knows of one."""
    from orchestration.pricing import Sum

    loaded = named(pipeline).load()
    account = account_of(loaded, place.region, place.profile)
    run = _driven(loaded, run_id, place)
    without = "transfers, requests and logs"
    if run is None:
        lines, without = account.billed(run_id), f"file systems, endpoints, {without}"
    else:
        progress = run.look()
        beside = _beside(loaded, progress, account.region)
        lines = [*account.of({run.token}, since=progress.begun), *beside.lines]
        doubts = [f"the endpoint of {name}, if it stands" for name in beside.doubtful]
        without = ", ".join([*doubts, without])
    if not lines and run is None:
        note(f"no job of run {run_id} of {account.jobs.pipeline.name} is in {account.region}")
        raise typer.Exit(FAILED)
    if as_json:
        each = [line.data() for line in lines]
        document({"run": run_id, "lines": each, "usd": Sum.of(lines).expected_usd})
        return
    for text in told(lines, without=without):
        say(text)


def _driven(pipeline: Pipeline, run_id: str, place: Place) -> Watched | None:
    """Return a run whose progress is known; ``None`` of one that neither service has driven."""
    try:
        return place.runs(pipeline).watched(pipeline, run_id)
    except StartError:
        if place.on is Backend.AIRFLOW:
            raise
        return None  # It ran elsewhere, or whoever asks may not ask Step Functions.


def _beside(pipeline: Pipeline, progress: Progress, region: str) -> Besides:
    """Return what a run has cost beside its jobs, transitions included."""
    from orchestration.pricing import machine
    from orchestration.runs.besides import besides

    stages = [stage.name for stage in pipeline.every_stage]
    now = datetime.datetime.now(datetime.UTC)
    found = besides(pipeline.lower(), stages, progress, region=region, now=now)
    if progress.transitions is None:
        return found
    return replace(found, lines=(*found.lines, machine.entered(progress.transitions, region)))


def told(lines: Sequence[Line], *, without: str) -> Iterator[str]:
    """Yield what was billed, and the sum, as text; ``without``: what it leaves out."""
    from orchestration.pricing import Sum

    for line in lines:
        quantity = "?" if line.expected is None else f"{line.expected:,.3g}"
        dollars = usd(line.expected_usd) if line.rate is not None else line.lacks
        unit, day = ("h", "") if line.rate is None else (line.rate.per, f" ({line.rate.dated})")
        yield f"{line.stage}: {line.what}, {quantity} {unit} at {price(line)}{day}: {dollars}"
    yield f"billed: {usd(Sum.of(lines).expected_usd)}, without {without}"


@dataclass(frozen=True, slots=True)
class Account:
    """The jobs that runs of a pipeline have left in an account."""

    jobs: Jobs
    session: Any
    """A session of boto3, in the region of the jobs."""

    @property
    def region(self) -> str:
        """The region that they are looked for in."""
        return str(self.session.region_name)

    def billed(self, run_id: str) -> list[Line]:
        """Return the lines of the jobs of a run, by whatever its user calls it."""
        from orchestration.runs import tokens_of

        return self.of(tokens_of(self.jobs.pipeline.name, run_id, self.session))

    def of(self, tokens: Collection[str], *, since: datetime.datetime | None = None) -> list[Line]:
        """Return the lines of the jobs of a run, by its identities, none older than ``since``."""
        from orchestration.pricing.billed import of_job
        from orchestration.pricing.lines import merged

        found = [
            line
            for job in self.jobs.of(tokens, since=since)
            for kind, description in job.paid
            for line in of_job(kind, job.stage, description, self.region)
        ]
        return list(merged(found))


def account_of(pipeline: Pipeline, region: str | None, profile: str | None) -> Account:
    """Return the account in which a pipeline has run."""
    require({"boto3": "aws"}, what="looking up jobs")
    from orchestration.cli.commands.deployment import session_of
    from orchestration.runs import Jobs

    session = session_of(region or pipeline.region, profile)
    return Account(Jobs(pipeline, session.client("sagemaker")), session)
