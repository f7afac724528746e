"""Version 3 of the SageMaker Python SDK at work: what its ``ModelTrainer`` sends."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any

from tests.sdk.capture import BUCKET, Recorder

_NAMES = {
    "sagemaker.core.shapes": (
        *("Channel", "DataSource", "FileSystemDataSource", "InstancePreference", "RetryStrategy"),
        *("S3DataSource", "ShuffleConfig", "InstancePlacementConfig", "PlacementSpecification"),
        *("TrainingRepositoryAuthConfig",),
    ),
    "sagemaker.core.training.configs": (
        *("CheckpointConfig", "Compute", "InfraCheckConfig", "InputData", "InstanceGroup"),
        *("MetricDefinition", "Networking", "OutputDataConfig", "RemoteDebugConfig"),
        *("SessionChainingConfig", "SourceCode", "StoppingCondition", "Tag"),
        *("TensorBoardOutputConfig", "TrainingImageConfig"),
    ),
    "sagemaker.train": ("ModelTrainer",),
    "sagemaker.train.distributed": ("MPI", "SMP", "DistributedConfig", "Torchrun"),
}


def names() -> dict[str, Any]:
    """The SDK's names that a trainer is made of."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, members in _NAMES.items():
            loaded = importlib.import_module(module)
            found |= {name: getattr(loaded, name) for name in members}
    logging.getLogger("sagemaker").setLevel(logging.CRITICAL)
    return found


def session(recorder: Recorder, **defaults: Any) -> Any:
    """The SDK's session on top of a recording one; ``defaults`` are of its configuration file."""
    module = importlib.import_module("sagemaker.core.helper.session_helper")
    config = importlib.import_module("sagemaker.core.config.config_manager")
    # The configuration below is valid, and would be looked at ten times for each job.
    config.SageMakerConfig.validate_sagemaker_config = staticmethod(lambda configuration: None)
    opted_out = {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}
    return module.Session(
        boto_session=recorder.session(),
        default_bucket=BUCKET,
        sagemaker_config={"SchemaVersion": "1.0", "SageMaker": {**opted_out, **defaults}},
    )
