"""Running probes: one after the other on the embedded AWS, side by side in an account at AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from orchestration.cli import run_file, values
from orchestration.cli.commands.account import Profile
from orchestration.cli.commands.rendering import Driver
from orchestration.cli.commands.running import require_driver, terminable
from orchestration.cli.naming import stage_modules
from orchestration.cli.output import note, require
from orchestration.cli.progress import following
from orchestration.cli.run_file import RunFile

if TYPE_CHECKING:
    from orchestration.direct.interrupting import Interrupted, Interruption
    from orchestration.direct.progress import OnProgress, Progress
    from orchestration.graph import ParameterSpec, ParameterValue
    from orchestration.pipeline import Pipeline
    from orchestration.pipeline.probing.jobs import Asked, Probe

Job = Mapping[str, Any]
"""The answer of ``DescribeTrainingJob``."""

Keep = Callable[["Probe", Job | None, str | None], None]
"""Is called with a probe that has ended, its job and the region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The account in which probes run, and what is given to them."""

    aws: bool
    region: str | None
    profile: str | None
    parameters: Sequence[str]
    uploads: Sequence[str]
    channels: Mapping[str, str]
    parallel: int = 1
    """Most jobs that run at a time at AWS."""


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
        interruption: Interruption | None,
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
            pipeline, given, session=self.session, run_id=run_id, on_progress=on_progress,
            interruption=interruption,
        )  # fmt: skip
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


@dataclass(frozen=True, slots=True)
class _Runs:
    """The probes of a stage, in one account."""

    asked: Asked
    where: Where
    account: _Account
    keep: Keep
    run_id: str
    interruption: Interruption | None

    def run(self, number: int, probe: Probe, on_progress: OnProgress) -> None:
        """Run a probe to its end, and keep what its job says."""
        from orchestration.pipeline import Pipeline

        pipeline = Pipeline.parse(probe.data, stages=stage_modules(self.asked.directory))
        run_id = f"{self.run_id}-{number}"
        given = self._given(pipeline)
        cause = self.account.run(pipeline, given, run_id, on_progress, self.interruption)
        if cause is not None:
            note(f"{named(number, probe)} failed: {cause}")
        self.keep(probe, self.account.job(pipeline, run_id), self.account.region)

    def _given(self, pipeline: Pipeline) -> dict[str, ParameterValue]:
        specs = pipeline.parameter_specs()
        unused, pairs = used(self.where.parameters, self.asked, specs)
        written = self.account.written.without(unused).parameters_of(specs)
        filled = () if self.where.aws else ("role",)
        return values.parameters(specs, pairs, filled=filled, written=written)


def used(
    pairs: Sequence[str], asked: Asked, specs: Sequence[ParameterSpec]
) -> tuple[frozenset[str], list[str]]:
    """Return the parameters that only other stages use, and the values of all others."""
    unused = asked.parameters - {spec.name for spec in specs}
    return unused, [each for each in pairs if each.partition("=")[0] not in unused]


def named(number: int, probe: Probe) -> str:
    """Name a probe for people."""
    return f"probe {number}, {probe.plan.instance_count} x {probe.plan.instance_type}"


def run_all(
    asked: Asked, probes: Sequence[Probe], where: Where, keep: Keep, pipeline: Path
) -> None:
    """Run probes, and keep what each has measured as soon as it has ended.

    At AWS they run side by side, so many at a time; a Ctrl-C stops the jobs of all. On the embedded
    AWS they would take time from each other, so that they run one after the other.
    """
    from orchestration.direct.interrupting import Interrupted, Interruption, attended
    from orchestration.direct.pipelines import new_run_id

    with _account(where, where.region or asked.region, pipeline) as account:
        numbered = list(enumerate(probes, start=1))
        if account.embedded:
            runs = _Runs(asked, where, account, keep, new_run_id(), None)
            for number, each in numbered:
                with terminable(), following(named(number, each), ["probe"]) as shown:
                    runs.run(number, each, shown.change)
            return
        interruption = Interruption()
        runs = _Runs(asked, where, account, keep, new_run_id(), interruption)
        for number, each in numbered:
            note(named(number, each))
        stages = [f"probe-{number}" for number, _ in numbered]
        with terminable(), following("probes", stages) as shown:

            def work() -> list[Interrupted]:
                failed = Event()
                with ThreadPoolExecutor(where.parallel) as pool:
                    running = [
                        pool.submit(_attended, runs, number, each, shown.change, failed)
                        for number, each in numbered
                    ]
                errors = [error for each in running if (error := each.exception()) is not None]
                for error in errors[1:]:
                    note(str(error))
                if errors:
                    raise errors[0]
                return [end for each in running if (end := each.result()) is not None]

            interrupted = attended(work, interruption, lambda: f"left {', '.join(stages)} at once")
        if interrupted:
            raise Interrupted("; ".join(map(str, interrupted)))


def _attended(
    runs: _Runs, number: int, probe: Probe, on_progress: OnProgress, failed: Event
) -> Interrupted | None:
    """Run a probe, unless one failed or all were interrupted before its turn.

    Returns an interruption.
    """
    from orchestration.direct.interrupting import Interrupted

    if failed.is_set() or (runs.interruption is not None and runs.interruption.asked.is_set()):
        return None
    try:
        runs.run(number, probe, lambda change: on_progress(_of(number, change)))
    except Interrupted as error:
        return error
    except Exception:
        failed.set()  # Whatever it was, the next job would be paid for, too.
        raise
    return None


def _of(number: int, change: Progress) -> Progress:
    """Return the change of a step of one probe, told apart from those of the others."""
    return replace(change, step=f"probe-{number}.{change.step.partition('.')[2]}")
