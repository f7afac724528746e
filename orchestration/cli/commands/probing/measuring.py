"""``orchestrate probe``: a few short jobs that measure what decides a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import typer

from orchestration.cli.commands.changing import Consent
from orchestration.cli.commands.planning import measured, show_plans
from orchestration.cli.commands.probing.accounts import Job, Where, run_all
from orchestration.cli.output import FAILED, document, note, require

if TYPE_CHECKING:
    from orchestration.pipeline.probing.jobs import Asked, Probe
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.answers.plans import Plans


def probe(
    path: Path,
    stage: str | None,
    where: Where,
    *,
    jobs: int,
    steps: int,
    measurements: Path | None,
    consent: Consent,
) -> None:
    """Measure the candidates that decide a stage's plan; exit with 1 if one says nothing.

    On the embedded AWS the measurements are those of this machine, so they are written only where
    ``measurements`` names a file.
    """
    from orchestration.pipeline.probing.jobs import Asked
    from orchestration.planning.model.measurements import beside
    from orchestration.planning.search.measured.deciding import deciding

    asked = Asked(path, stage)
    file = measurements or (beside(path) if where.aws else None)
    known = measured(path, measurements)
    plans = _planned(asked, known)
    probes = [
        asked.probe(plan, asked.request.space(), steps, where.channels)
        for plan in deciding(plans, jobs)
    ]
    if not probes:
        if not consent.as_json:
            show_plans(plans, asked.name)
        note("nothing to probe: " + ("; ".join(plans.missing) or "what decides it is measured"))
        raise typer.Exit(0 if plans.chosen else FAILED)
    _agree(probes, consent, where)
    if consent.dry_run:
        return
    found: list[Measurement] = []
    lock = Lock()

    def keep(done: Probe, job: Job | None, region: str | None) -> None:
        reading = _read(done, job, region)
        with lock:
            if reading is not None:
                found.append(reading)
                if file is not None:
                    _write(file, [*known, *found])

    run_all(asked, probes, where, keep, path)
    _tell(asked, [*known, *found], found, as_json=consent.as_json)
    if file is None:
        note(
            "these are measurements of this machine; to plan with them, give --measurements FILE; "
            "--aws measures in your account"
        )
    if len(found) < len(probes):
        raise typer.Exit(FAILED)


def from_runs(
    path: Path, stage: str | None, where: Where, *, measurements: Path | None, as_json: bool
) -> None:
    """Add a stage's past jobs to its file of measurements; exit with 1 if there are none."""
    require({"boto3": "aws"}, what="looking up jobs")
    from orchestration.cli.commands.checking import jobs_of
    from orchestration.cli.commands.deployment import session_of
    from orchestration.pipeline.probing.jobs import Asked
    from orchestration.pipeline.probing.readings import measurement
    from orchestration.pipeline.probing.runs import ran
    from orchestration.planning.model.measurements import beside

    asked = Asked(path, stage)
    tell = {str(quantity): name for quantity, name in asked.request.tell.items()}
    session = session_of(where.region or asked.region, where.profile)
    client = session.client("sagemaker")
    found: list[Measurement] = []
    for name, _ in islice(jobs_of(client, asked.pipeline, asked.name), _MOST_RUNS):
        job = client.describe_training_job(TrainingJobName=name)
        way = ran(job, asked.task, tell, asked.pin)
        if isinstance(way, str):
            note(f"{name} left out: {way}")
            continue
        reading = measurement(way, job, region=session.region_name, source="run")
        if reading is None:
            note(f"{name} left out: its steps were not measured; see `measured_steps`")
        else:
            found.append(reading)
    if not found:
        note(f"no past job of {asked.name} says how long its steps took")
        raise typer.Exit(FAILED)
    known = [*measured(path, measurements), *found]
    _write(measurements or beside(path), known)
    _tell(asked, known, found, as_json=as_json)


_MOST_RUNS: Final = 50
"""Past jobs that are looked at, the latest first."""


def _planned(asked: Asked, known: Sequence[Measurement]) -> Plans:
    from orchestration.planning.search.find import find_plans

    task = replace(asked.task, measurements=tuple(known))
    return find_plans(task, asked.request.space(), asked.request.goal())


def _agree(probes: Sequence[Probe], consent: Consent, where: Where) -> None:
    """Show the jobs with the most that they can cost, and ask."""
    from orchestration.pipeline.probing.jobs import is_predicted
    from orchestration.planning.search.amounts import duration, money

    for each in probes:
        plan, longest = each.plan, duration(each.max_runtime_s)
        name = f"{plan.instance_count} x {plan.instance_type}: {plan.layout}"
        about = f" of about {duration(plan.prediction.step_time_s)}" if is_predicted(plan) else ""
        bound = "of unknown price" if each.most_usd is None else f"{money(each.most_usd)} at most"
        cost = f", {bound}" if where.aws else ""
        note(f"{name}, {each.steps} steps{about}, {longest} at most{cost}")
    known = [each.most_usd for each in probes if each.most_usd is not None]
    if where.aws and not consent.dry_run:
        total = f"at most {money(sum(known))}" + (
            "" if len(known) == len(probes) else " and jobs of unknown price"
        )
        consent.ask(f"run {len(probes)} jobs in your account for {total}")


def _read(probe: Probe, job: Job | None, region: str | None) -> Measurement | None:
    from orchestration.pipeline.probing.readings import measurement

    reading = None
    if job is not None:
        reading = measurement(probe.plan, job, region=region, source="probe")
    if reading is None:
        note("no step time was reported; are the batches in measured_steps(…)?")
    return reading


def _write(file: Path, measurements: Sequence[Measurement]) -> None:
    from orchestration.planning.model.measurements import text

    file.write_text(text(measurements), encoding="utf-8")
    note(f"{file} written")


def _tell(
    asked: Asked, known: Sequence[Measurement], found: Sequence[Measurement], *, as_json: bool
) -> None:
    plans = _planned(asked, known)
    if as_json:
        measurements = [each.model_dump(mode="json", exclude_none=True) for each in found]
        document({"measurements": measurements, "plan": plans.data()})
    else:
        show_plans(plans, asked.name)
