"""Runs of pipelines on the embedded AWS."""

from orchestration.direct.progress import OnProgress, Progress
from orchestration.local.run.pipelines import run
from orchestration.local.run.report import On, RunReport, StageReport

__all__ = ["On", "OnProgress", "Progress", "RunReport", "StageReport", "run"]
