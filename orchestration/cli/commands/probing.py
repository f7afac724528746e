"""``orchestrate probe``: a few short jobs that measure what decides a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cli import run_file, values
from orchestration.cli.commands.account import Profile
from orchestration.cli.commands.changing import Consent
from orchestration.cli.commands.planning import measured, show_plans
from orchestration.cli.commands.rendering import Driver
from orchestration.cli.commands.running import require_driver, terminable
from orchestration.cli.naming import stage_modules
from orchestration.cli.output import FAILED, document, note, require
from orchestration.cli.progress import following
from orchestration.cli.run_file import RunFile

if TYPE_CHECKING:
    from orchestration.direct.progress import OnProgress
    from orchestration.graph import ParameterValue
    from orchestration.pipeline import Pipeline
    from orchestration.pipeline.probing.jobs import Asked, Probe
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.answers.plans import Plans

Job = Mapping[str, Any]
"""The answer of ``DescribeTrainingJob``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The account in which probes run, and what is given to them."""

    aws: bool
    region: str | None
    profile: str | None
    parameters: Sequence[str]
    uploads: Sequence[str]
    channels: Mapping[str, str]


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
    with _account(where, where.region or asked.region, path) as account:
        for each, job in _run(asked, probes, where, account):
            reading = _read(each, job, account.region)
            if reading is not None:
                found.append(reading)
                if file is not None:
                    _write(file, [*known, *found])
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


@dataclass(frozen=True, slots=True)
class _Account:
    """An account in which pipelines are run directly."""

    session: Any
    region: str | None
    embedded: bool
    written: RunFile
    """The content of ``run.yaml``; nothing in an account at AWS, as in runs."""
    uploads: Mapping[str, Path]

    def run(
        self,
        pipeline: Pipeline,
        given: Mapping[str, ParameterValue],
        run_id: str,
        on_progress: OnProgress,
    ) -> str | None:
        """Run a pipeline to its end; returns why it failed."""
        if self.embedded:
            from orchestration.local.run import run as run_locally

            report = run_locally(
                pipeline, parameters=given, aws=self.session, uploads=self.uploads,
                run_id=run_id, on_progress=on_progress,
            )  # fmt: skip
            return report.cause if report.state == "failed" else None
        from orchestration.direct.pipelines import outcome_of

        outcome = outcome_of(
            pipeline, given, session=self.session, run_id=run_id, on_progress=on_progress
        )
        return outcome.cause if outcome.state == "failed" else None

    def job(self, pipeline: Pipeline, run_id: str) -> Job | None:
        """Return the training job of a run; ``None``: none was started."""
        from orchestration.execution.clients import one_attempt
        from orchestration.expressions.evaluate import run_token

        client = self.session.client("sagemaker", config=one_attempt())
        token = run_token(f"{pipeline.name}/{run_id}")
        listed = client.list_training_jobs(NameContains=token)["TrainingJobSummaries"]
        if not listed:
            return None
        described: Job = client.describe_training_job(TrainingJobName=listed[0]["TrainingJobName"])
        return described


@contextmanager
def _account(where: Where, region: str | None, pipeline: Path) -> Iterator[_Account]:
    if where.aws:
        require({"boto3": "aws"}, what="probing in your account")
        yield _Account(Profile(where.profile, region), region, False, RunFile(), {})
        return
    written = run_file.beside(pipeline)
    uploads = {**written.uploads, **values.uploads(where.uploads)}
    require_driver(Driver.DIRECT)
    from orchestration.local import EmbeddedAws
    from orchestration.local.server.embedded import DEFAULT_REGION

    with EmbeddedAws(region=region or DEFAULT_REGION) as aws:
        yield _Account(aws, aws.region, True, written, uploads)


def _run(
    asked: Asked, probes: Sequence[Probe], where: Where, account: _Account
) -> Iterator[tuple[Probe, Job | None]]:
    """Run the probes one after the other; yields each with its job."""
    from orchestration.direct.pipelines import new_run_id
    from orchestration.pipeline import Pipeline

    first = new_run_id()
    for number, each in enumerate(probes, start=1):
        pipeline = Pipeline.parse(each.data, stages=stage_modules(asked.directory))
        specs = pipeline.parameter_specs()
        used = {spec.name for spec in specs}
        unused = asked.parameters - used
        pairs = [text for text in where.parameters if text.partition("=")[0] not in unused]
        filled = () if where.aws else ("role",)
        given = values.parameters(
            specs,
            pairs,
            filled=filled,
            written=account.written.without(unused).parameters_of(specs),
        )
        plan = each.plan
        title = f"probe {number} of {len(probes)}: {plan.instance_count} x {plan.instance_type}"
        with terminable(), following(title, ["probe"], live=True) as on_progress:
            cause = account.run(pipeline, given, f"{first}-{number}", on_progress)
        if cause is not None:
            note(f"{title} failed: {cause}")
        yield each, account.job(pipeline, f"{first}-{number}")


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
