"""``orchestrate run``: run a pipeline on the embedded AWS and follow it to its end."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cli import run_file, values
from orchestration.cli.commands.embedded.holding import has_terminal, hold
from orchestration.cli.commands.embedded.leaving import Left
from orchestration.cli.commands.rendering import Driver
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, console, document, note, note_failure, require
from orchestration.cli.progress import following
from orchestration.cli.questions import Replies

if TYPE_CHECKING:
    from rich.table import Table

    from orchestration.local.run.report import RunReport, StageReport

_LOG_LINES: Final = 40
MODULES: Final = {"boto3": "local", "moto": "local", "jsonata": "local", "psutil": "local"}
AIRFLOW: Final = {"airflow.sdk": "airflow", "airflow.providers.amazon": "airflow"}


def check_options(region: str | None, profile: str | None) -> None:
    """Refuse what only a run in an account can do."""
    if region or profile:
        raise typer.BadParameter(
            "is for runs in your own account: give --aws too",
            param_hint=("--region" if region else "--profile"),
        )


def run_or_watch(
    watch: bool, pipeline: str | None, driver: Driver, *given: Sequence[str], **options: Any
) -> None:
    """Run a pipeline as :func:`run` does; with ``watch`` again after each change of its files."""
    if not watch:
        run(pipeline, driver, *given, **options)
        return
    if options["as_json"]:
        raise typer.BadParameter("has no end to print a document at", param_hint="--watch")
    from orchestration.cli.commands.embedded.watching import repeatedly

    def once(run_id: str, job_cache: Path) -> None:
        again = {**options, "run_id": options["run_id"] or run_id}
        run(pipeline, driver, *given, **again, job_cache=job_cache)

    repeatedly(pipeline, once, written=options["left"].report)


def run(
    pipeline: str | None,
    driver: Driver,
    parameters: Sequence[str],
    uploads: Sequence[str],
    *,
    run_id: str | None,
    time_scale: float,
    replies: Replies,
    left: Left,
    as_json: bool,
    job_cache: Path | None = None,
) -> None:
    """Run a pipeline, show its report, and exit with 1 if it failed."""
    which = named(pipeline or run_file.pipeline_here())
    loaded = which.load_with_code_as_it_is()
    left.check(loaded.name, which.path, run_id)
    specs = loaded.parameter_specs()
    written = run_file.beside(which.path)
    if written:
        note(f"parameters and uploads: {run_file.NAME}, and the command line")
    chosen = values.parameters(
        specs, parameters, filled=("role",), written=written.parameters_of(specs)
    )
    files = {**written.uploads, **values.uploads(uploads)}
    require_driver(driver)
    for key in which.stale():
        note(f"{key} changed since it was locked; this run takes it as it is now")
    from orchestration.local.run import run as run_locally
    from orchestration.local.run.keeping import failed_folder
    from orchestration.local.run.pipelines import account_of

    title = f"{loaded.name} on {driver.value}"
    stages = [stage.name for stage in loaded.every_stage]
    person = replies.person(loaded.lower(), alone=True)
    open_after = left.keep and not as_json and job_cache is None and has_terminal()
    with terminable(), ExitStack() as stack:
        aws = stack.enter_context(account_of(loaded, time_scale)) if open_after else None
        with following(title, stages, live=person is None) as shown:
            report = run_locally(
                loaded,
                on=driver.value,
                parameters=chosen,
                uploads=files,
                aws=aws,
                run_id=run_id,
                on_progress=shown.change,
                on_work=shown.work,
                on_question=person,
                on_end=left.writer(loaded, which.path, files),
                time_scale=time_scale,
                job_cache=job_cache,
            )
        _show(report, as_json=as_json)
        tell_failure(report, None if left.keep else failed_folder(which.path, loaded.name))
        if aws is not None:
            hold(aws)
    if report.state == "failed":
        raise typer.Exit(FAILED)


def _show(report: RunReport, *, as_json: bool) -> None:
    if as_json:
        document(report.to_json())
    else:
        console().print(table([report]))


@contextmanager
def terminable() -> Iterator[None]:
    """Take SIGTERM for a Ctrl-C, so that jobs are stopped and clean-ups run."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def require_driver(*drivers: Driver) -> None:
    """Raise an error that names the extras to install if a driver cannot run here."""
    airflow = AIRFLOW if Driver.AIRFLOW in drivers else {}
    require({**MODULES, **airflow}, what="running pipelines on this machine")


def tell_failure(report: RunReport, kept: Path | None = None) -> None:
    """Print the reason of a failed run on standard error, and where its logs are ``kept``.

    Where they could not be written, the folder has those of an earlier run, or none.
    """
    from orchestration.local.run.keeping import Kept

    if report.state != "failed":
        return
    if report.log and not any(stage.log for stage in report.stages):
        note("the last lines of Airflow's log:")
        note("\n".join(report.log.splitlines()[-_LOG_LINES:]))
    for stage in report.stages:
        for line in stage.log:
            note(f"{stage.name}: {line}")
    if kept is not None and Kept.of(kept).is_of(report):
        note(f"the whole logs: {kept / 'logs'}, or `orchestrate logs STAGE --kept`")
    note_failure(f"{report.pipeline} failed on {report.on}", report.error, report.cause)


def table(reports: Sequence[RunReport]) -> Table:
    """Tabulate stages by runs: state, duration, jobs and metrics."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=f"{reports[0].pipeline}: stages", title_justify="left")
    made.add_column("stage")
    for report in reports:
        made.add_column(f"{report.on}: {report.state}, {report.duration_s:.1f} s", overflow="fold")
    for row in zip(*(report.stages for report in reports), strict=True):
        made.add_row(row[0].name, *(Text("\n".join(_lines(stage))) for stage in row))
    return made


def _lines(stage: StageReport) -> list[str]:
    seconds = "" if stage.duration_s is None else f", {stage.duration_s:.1f} s"
    return [f"{stage.state}{seconds}", *stage.job_names, *_metrics(stage.metrics)]


def _metrics(metrics: Mapping[str, float]) -> list[str]:
    return [f"{name} = {value:.6g}" for name, value in metrics.items()]
