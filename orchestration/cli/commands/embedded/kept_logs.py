"""``orchestrate logs --kept``: the logs of a stage in a run on this machine that was kept."""

from __future__ import annotations

from pathlib import Path

import typer

from orchestration.cli.commands.deployed.logging import check_stage
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, say
from orchestration.errors import near


def logs(pipeline: str, stage: str, run_id: str | None, *, tail: int | None, as_json: bool) -> None:
    """Print the logs of a stage's jobs; exit with 1 if it has none."""
    which = named(pipeline)
    loaded = which.load()
    check_stage(loaded, stage)
    folder = _run(which.path, loaded.name, run_id)
    files = sorted((folder / "logs" / stage).glob("*.log"))
    if not files:
        note(f"stage {stage} of run {folder.name} has started no job")
        raise typer.Exit(FAILED)
    read = {file.stem: file.read_text(encoding="utf-8").splitlines() for file in files}
    lines = {job: text[-tail:] if tail else text for job, text in read.items()}
    if as_json:
        jobs = [{"name": job, "lines": text} for job, text in lines.items()]
        document({"pipeline": loaded.name, "run": folder.name, "stage": stage, "jobs": jobs})
        return
    note(f"run {folder.name}")
    for job, text in lines.items():
        for line in text:
            say(f"{job} {line}")


def _run(path: Path | None, name: str, run_id: str | None) -> Path:
    from orchestration.local.run.keeping import kept_runs

    runs = kept_runs(path, name)
    for folder in runs:
        if run_id in (None, folder.name):
            return folder
    if not runs:
        note("no run of this pipeline was kept, and none has failed: `orchestrate run --keep`")
    else:
        names = [folder.name for folder in runs]
        note(f"no run {run_id} was kept{near(str(run_id), names)}; the newest is {names[0]}")
    raise typer.Exit(FAILED)
