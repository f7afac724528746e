"""The work of jobs and endpoints, which tests may replace by stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.jobs.processing import ProcessingJob
from orchestration.local.sagemaker.jobs.training import TrainingJob
from orchestration.local.sagemaker.jobs.transform import TransformJob
from orchestration.local.sagemaker.serving.model_host import ModelHost, start_model_host


@dataclass(frozen=True)
class Workloads:
    """The work of jobs and endpoints: by default processes that really run.

    Tests that need hundreds of runs put stand-ins here.
    """

    training: type[TrainingJob] = TrainingJob
    processing: type[ProcessingJob] = ProcessingJob
    transform: type[TransformJob] = TransformJob
    model_host: Callable[[Account, str, JsonObject, Path], ModelHost] = start_model_host
