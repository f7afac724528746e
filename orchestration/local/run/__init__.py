"""Runs of whole pipelines on the embedded AWS."""

from orchestration.local.run.pipelines import run
from orchestration.local.run.report import On, OnProgress, Progress, RunReport, StageReport

__all__ = ["On", "OnProgress", "Progress", "RunReport", "StageReport", "run"]
