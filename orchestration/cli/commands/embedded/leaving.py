"""A folder and a page about a run on this machine, where they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.cli.output import note

if TYPE_CHECKING:
    from orchestration.local.run.pipelines import OnEnd
    from orchestration.local.run.report import RunReport
    from orchestration.local.server.embedded import EmbeddedAws
    from orchestration.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Left:
    """The files to write at the end of a run."""

    keep: bool
    """Keep logs and objects in a folder."""
    report: Path | None
    """The page to write."""

    def writer(self, pipeline: Pipeline, path: Path | None, uploads: Mapping[str, Path]) -> OnEnd:
        """Return what writes it, while the account is there."""

        def write(aws: EmbeddedAws, ended: RunReport) -> None:
            from orchestration.local.run import keeping

            if self.keep:
                folder = keeping.run_folder(path, pipeline.name, ended.run_id)
                uris = keeping.keep(aws, ended, folder, uploads=uploads)
                note(f"kept: {folder} (logs, and {len(uris)} objects of S3)")
            if self.report is not None:
                from orchestration.local.pages import page

                logs = {job: aws.logs(job) for _, job in keeping.logged(ended)}
                self.report.parent.mkdir(parents=True, exist_ok=True)
                self.report.write_text(page(ended, pipeline, logs), encoding="utf-8")
                note(f"wrote {self.report}")

        return write
