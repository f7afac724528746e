"""A folder and a page about a run on this machine, where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from orchestration.cli.output import note
from orchestration.errors import LocalError

if TYPE_CHECKING:
    from orchestration.local.run.pipelines import OnEnd
    from orchestration.local.run.report import RunReport
    from orchestration.local.server.embedded import EmbeddedAws
    from orchestration.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Left:
    """The files to write at the end of a run.

    Where it failed, these are its logs at the least.
    """

    keep: bool
    """Keep logs and objects in a folder."""
    report: Path | None
    """The page to write."""

    def check(self, name: str, path: Path | None, run_id: str | None) -> None:
        """Raise a usage error for what can't be written, before a run is spent on it."""
        if self.keep:
            from orchestration.local.run.keeping import run_folder

            try:
                with _refused("--keep"):
                    folder = run_folder(path, name, run_id or "local")
                    folder.parent.mkdir(parents=True, exist_ok=True)
            except LocalError as error:
                raise typer.BadParameter(str(error), param_hint="--run-id") from None
        if self.report is not None:
            if self.report.is_dir():
                raise typer.BadParameter(f"{self.report} is a folder", param_hint="--report")
            with _refused("--report"):
                self.report.parent.mkdir(parents=True, exist_ok=True)

    def writer(self, pipeline: Pipeline, path: Path | None, uploads: Mapping[str, Path]) -> OnEnd:
        """Return what writes it, while the account is there; what fails there is only told."""

        def write(aws: EmbeddedAws, ended: RunReport) -> None:
            from orchestration.local.run import keeping

            if self.keep:
                with _told("--keep"):
                    folder = keeping.run_folder(path, pipeline.name, ended.run_id)
                    uris = keeping.keep(aws, ended, folder, uploads=uploads)
                    note(f"kept: {folder} (logs, and {len(uris)} objects of S3)")
            elif ended.state == "failed":
                with _told("the logs"):
                    keeping.home(path)
                    keeping.keep_logs(aws, ended, keeping.failed_folder(path, pipeline.name))
            if self.report is not None:
                from orchestration.local.pages import page

                logs = {job: aws.logs(job) for _, job in keeping.logged(ended)}
                text = page(ended, pipeline, logs)
                with _told("--report"):
                    self.report.parent.mkdir(parents=True, exist_ok=True)
                    self.report.write_text(text, encoding="utf-8")
                    note(f"wrote {self.report}")

        return write


@contextmanager
def _refused(option: str) -> Iterator[None]:
    """Make a usage error of a place that can't be written."""
    try:
        yield
    except OSError as error:
        raise typer.BadParameter(f"can't be written: {error}", param_hint=option) from None


@contextmanager
def _told(option: str) -> Iterator[None]:
    """Tell that something could not be written: the run has ended, and its result is told too."""
    try:
        yield
    except OSError as error:
        note(f"error: {option} could not be written: {error}")
