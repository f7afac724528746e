"""``orchestrate probe``: a few short jobs that measure what decides a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

import typer

from orchestration.cli.commands.changing import Consent
from orchestration.cli.commands.deployment import session_to_change
from orchestration.cli.commands.planning import measured, show_plans
from orchestration.cli.commands.probing.accounts import Job, Where, run_all, used
from orchestration.cli.naming import Known
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
    to: Path | None = None,
) -> None:
    """Measure the candidates that decide a stage's plan; exit with 1 if one says nothing.

    On the embedded AWS the measurements are those of this machine, so they are written only where
    ``measurements`` names a file. `to`: a file for the pipeline of the probes, which are not run.
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
        _leave(plans, asked, consent)
    if to is not None:
        _write_pipeline(asked, probes, where.parameters, to, consent)
        return
    if where.aws and not consent.dry_run:
        require({"boto3": "aws"}, what="probing in your account")
        session_to_change(Known(asked.pipeline, asked.region), where.region, where.profile)
    _agree(probes, consent, where)
    if consent.dry_run:
        _foresee(probes, consent)
        return
    found: list[Measurement] = []
    lock = Lock()

    def keep(done: Probe, job: Job | None, region: str | None) -> None:
        reading = _read(done, job, region)
        with lock:
            if reading is not None:
                found.append(reading)
                if file is not None:
                    write(file, [*known, *found])

    run_all(asked, probes, where, keep, path)
    tell(asked, [*known, *found], found, as_json=consent.as_json)
    if file is None:
        note(
            "these are measurements of this machine; to plan with them, give --measurements FILE; "
            "--aws measures in your account"
        )
    if len(found) < len(probes):
        raise typer.Exit(FAILED)


def _leave(plans: Plans, asked: Asked, consent: Consent) -> NoReturn:
    """End the command, since nothing is to be measured."""
    if consent.as_json:
        document({"probes": [], "plan": plans.data()})
    else:
        show_plans(plans, asked.name)
    note("nothing to probe: " + ("; ".join(plans.missing) or "what decides it is measured"))
    raise typer.Exit(0 if plans.chosen else FAILED)


def _planned(asked: Asked, known: Sequence[Measurement]) -> Plans:
    from orchestration.planning.search.find import find_plans

    task = replace(asked.task, measurements=tuple(known))
    return find_plans(task, asked.request.space(), asked.request.goal())


def _write_pipeline(
    asked: Asked, probes: Sequence[Probe], pairs: Sequence[str], to: Path, consent: Consent
) -> None:
    """Write a pipeline whose stages are the probes, with given parameters as defaults."""
    from orchestration.cli import values
    from orchestration.cli.naming import stage_modules
    from orchestration.pipeline.probing.together import together

    pipeline = together(asked, probes, stage_modules(asked.directory))
    specs = pipeline.parameter_specs()
    _, pairs = used(pairs, asked, specs)
    given = values.parameters(specs, pairs, filled=[spec.name for spec in specs])
    declared = pipeline.declared_parameters()
    defaults = {
        name: declared[name].model_copy(update={"default": value}) for name, value in given.items()
    }
    pipeline = pipeline.model_copy(update={"parameters": {**pipeline.parameters, **defaults}})
    text = pipeline.to_yaml(to.parent)
    _show(probes, costs=True)
    if not consent.dry_run:
        if to.exists() and to.read_text(encoding="utf-8") != text:
            consent.ask(f"replace {to}")
        to.write_text(text, encoding="utf-8")
    if consent.as_json:
        made = [_data(each) for each in probes]
        document({"pipeline": pipeline.name, "file": str(to), "probes": made})
    if consent.dry_run:
        return
    note(f"{to} written; once it has run in your account, `probe … --from-runs` reads its jobs")


def _agree(probes: Sequence[Probe], consent: Consent, where: Where) -> None:
    """Show the jobs with the most that they can cost, and ask."""
    from orchestration.planning.search.amounts import money

    _show(probes, costs=where.aws)
    if where.aws and not consent.dry_run:
        known = [each.most_usd for each in probes if each.most_usd is not None]
        total = f"at most {money(sum(known))}" + (
            "" if len(known) == len(probes) else " and jobs of unknown price"
        )
        consent.ask(f"run {len(probes)} jobs in your account for {total}")


def _show(probes: Sequence[Probe], *, costs: bool) -> None:
    from orchestration.pipeline.probing.jobs import is_predicted
    from orchestration.planning.search.amounts import duration, money

    for each in probes:
        plan, longest = each.plan, duration(each.max_runtime_s)
        name = f"{plan.instance_count} x {plan.instance_type}: {plan.layout}"
        about = f" of about {duration(plan.prediction.step_time_s)}" if is_predicted(plan) else ""
        bound = "of unknown price" if each.most_usd is None else f"{money(each.most_usd)} at most"
        cost = f", {bound}" if costs else ""
        note(f"{name}, {each.steps} steps{about}, {longest} at most{cost}")


def _foresee(probes: Sequence[Probe], consent: Consent) -> None:
    """Print the jobs of a dry run as JSON, where that is asked for."""
    if consent.as_json:
        document({"probes": [_data(each) for each in probes]})


def _data(probe: Probe) -> dict[str, object]:
    """Return a job with its bounds, for programs."""
    from orchestration.pipeline.probing.jobs import is_predicted

    plan = probe.plan
    return {
        "instance_type": plan.instance_type,
        "instance_count": plan.instance_count,
        "layout": str(plan.layout),
        "steps": probe.steps,
        "step_time_s": plan.prediction.step_time_s if is_predicted(plan) else None,
        "max_runtime_s": probe.max_runtime_s,
        "most_usd": probe.most_usd,
    }


def _read(probe: Probe, job: Job | None, region: str | None) -> Measurement | None:
    from orchestration.pipeline.probing.readings import measurement

    reading = None
    if job is not None:
        reading = measurement(probe.plan, job, region=region, source="probe")
    if reading is None:
        note("no step time was reported; are the batches in measured_steps(…)?")
    return reading


def write(file: Path, measurements: Sequence[Measurement]) -> None:
    """Write a file of measurements."""
    from orchestration.planning.model.measurements import text

    file.write_text(text(measurements), encoding="utf-8")
    note(f"{file} written")


def tell(
    asked: Asked, known: Sequence[Measurement], found: Sequence[Measurement], *, as_json: bool
) -> None:
    """Show the plan that follows from all measurements; as JSON with those that were found."""
    plans = _planned(asked, known)
    if as_json:
        measurements = [each.model_dump(mode="json", exclude_none=True) for each in found]
        document({"measurements": measurements, "plan": plans.data()})
    else:
        show_plans(plans, asked.name)
