"""The stages of a pipeline: what a user writes. Each lowers itself to steps."""

from orchestration.stages.deployment import Deployment, SmokeTest
from orchestration.stages.evaluation import CheckpointEvaluation, Threshold
from orchestration.stages.lustre import ExistingFileSystem, NewFileSystem
from orchestration.stages.stage import Context, Fragment, Gate, Guard, Stage
from orchestration.stages.staging import DataStaging, S3Destination
from orchestration.stages.training import (
    Checkpoints,
    Cluster,
    FileSystemChannel,
    ManagedSpot,
    S3Channel,
    TrainingJob,
)
from orchestration.stages.values import Source, Vpc

__all__ = [
    "CheckpointEvaluation",
    "Checkpoints",
    "Cluster",
    "Context",
    "DataStaging",
    "Deployment",
    "ExistingFileSystem",
    "FileSystemChannel",
    "Fragment",
    "Gate",
    "Guard",
    "ManagedSpot",
    "NewFileSystem",
    "S3Channel",
    "S3Destination",
    "SmokeTest",
    "Source",
    "Stage",
    "Threshold",
    "TrainingJob",
    "Vpc",
]
