"""``orchestrate logs --kept``: the logs of a stage in a run on this machine that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from orchestration.cli.commands.deployed.logging import check_stage
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, say
from orchestration.errors import near

if TYPE_CHECKING:
    from orchestration.local.run.keeping import Kept


def logs(pipeline: str, stage: str, run_id: str | None, *, tail: int | None, as_json: bool) -> None:
    """Print the logs of a stage's jobs; exit with 1 if it has none."""
    which = named(pipeline)
    loaded = which.load()
    check_stage(loaded, stage)
    run = _run(which.path, loaded.name, run_id)
    files = sorted((run.folder / "logs" / stage).glob("*.log"))
    if not files:
        note(f"stage {stage} of run {run.run_id} has started no job")
        raise typer.Exit(FAILED)
    read = {file.stem: file.read_text(encoding="utf-8").splitlines() for file in files}
    lines = {job: text[-tail:] if tail else text for job, text in read.items()}
    if as_json:
        jobs = [{"name": job, "lines": text} for job, text in lines.items()]
        document({"pipeline": loaded.name, "run": run.run_id, "stage": stage, "jobs": jobs})
        return
    note(f"run {run.run_id}")
    for job, text in lines.items():
        for line in text:
            say(f"{job} {line}")


def _run(path: Path | None, name: str, run_id: str | None) -> Kept:
    """Return a run by its name, or by that of its folder; the newest one without either."""
    from orchestration.local.run.keeping import kept_runs

    runs = kept_runs(path, name)
    for run in runs:
        if run_id in (None, run.run_id, run.folder.name):
            return run
    if not runs:
        note("no run of this pipeline was kept, and none has failed: `orchestrate run --keep`")
    else:
        names = [run.run_id for run in runs]
        note(f"no run {run_id} was kept{near(str(run_id), names)}; the newest is {names[0]}")
    raise typer.Exit(FAILED)
