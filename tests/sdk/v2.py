"""Version 2 of the SageMaker Python SDK at work: what its estimators send."""

from __future__ import annotations

import functools
import importlib
import logging
import warnings
from pathlib import Path
from typing import Any

from tests.sdk.capture import BUCKET, REGION, ROLE, S3, Recorder

_NAMES = {
    "sagemaker.algorithm": ("AlgorithmEstimator",),
    "sagemaker.amazon.amazon_estimator": ("FileSystemRecordSet", "RecordSet"),
    "sagemaker.chainer": ("Chainer",),
    "sagemaker.debugger": (
        *("CollectionConfig", "DebuggerHookConfig", "FrameworkProfile", "ProfilerConfig"),
        *("Profiler", "ProfilerRule", "Rule", "TensorBoardOutputConfig", "rule_configs"),
    ),
    "sagemaker.estimator": ("Estimator",),
    "sagemaker.huggingface": ("HuggingFace", "TrainingCompilerConfig"),
    "sagemaker.inputs": ("FileSystemInput", "ShuffleConfig", "TrainingInput"),
    "sagemaker.instance_group": ("InstanceGroup",),
    "sagemaker.mxnet": ("MXNet",),
    "sagemaker.pytorch": ("PyTorch",),
    "sagemaker.rl": ("RLEstimator", "RLFramework", "RLToolkit"),
    "sagemaker.sklearn": ("SKLearn",),
    "sagemaker.tensorflow": ("TensorFlow",),
    "sagemaker.tuner": (
        *("CategoricalParameter", "ContinuousParameter", "HyperbandStrategyConfig"),
        *("HyperparameterTuner", "IntegerParameter", "StrategyConfig", "WarmStartConfig"),
        *("TuningJobCompletionCriteriaConfig", "WarmStartTypes"),
    ),
    "sagemaker.workflow.parameters": ("ParameterInteger", "ParameterString"),
    "sagemaker.xgboost": ("XGBoost",),
    "sagemaker": ("KMeans", "PCA", "Session", "image_uris"),
}


def names(source: Path) -> dict[str, Any]:
    """What the code of a case refers to; ``source`` is a folder with ``train.py``."""
    found: dict[str, Any] = {"case": lambda function: function}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, members in _NAMES.items():
            loaded = importlib.import_module(module)
            found |= {name: getattr(loaded, name) for name in members}
    logging.getLogger("sagemaker").setLevel(logging.ERROR)
    found |= {"ROLE": ROLE, "S3": S3, "SRC": str(source), "common": _common(source)}
    return found


def _common(source: Path) -> Any:
    def common(session: Any, **given: Any) -> dict[str, Any]:
        where = {"entry_point": "train.py", "source_dir": str(source), "role": ROLE}
        return {**where, "sagemaker_session": session, **given}

    return common


def session(recorder: Recorder, **defaults: Any) -> Any:
    """The SDK's session on top of a recording one; ``defaults`` are of its configuration file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("sagemaker")
        utils = importlib.import_module("sagemaker.utils")
        # The configuration below is valid, and would be looked at twenty times for each job.
        vars(utils)["validate_sagemaker_config"] = lambda configuration: None
        # Every estimator makes a client for an app that is no part of a job.
        vars(importlib.import_module("sagemaker.estimator"))["TensorBoardApp"] = lambda region: None
        # Tables that are read afresh for every image.
        uris = importlib.import_module("sagemaker.image_uris")
        for where, name in ((utils, "_botocore_resolver"), (uris, "config_for_framework")):
            vars(where)[name] = functools.cache(getattr(where, name))
        opted_out = {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}
        return module.Session(
            boto_session=recorder.session(),
            default_bucket=BUCKET,
            sagemaker_config={"SchemaVersion": "1.0", "SageMaker": {**opted_out, **defaults}},
        )


def region() -> str:
    """Where the SDK believes to be."""
    return REGION
