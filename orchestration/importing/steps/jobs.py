"""Tuning jobs and batch transforms as stages of their kinds; none where those can't say them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from orchestration.importing import training_jobs
from orchestration.importing.steps import serving

_CONFIG: Final = frozenset({
    "Strategy", "HyperParameterTuningJobObjective", "ResourceLimits", "ParameterRanges",
    "TrainingJobEarlyStoppingType", "TuningJobCompletionCriteria", "RandomSeed", "StrategyConfig",
})  # fmt: skip
_LIMITS: Final = {
    "MaxNumberOfTrainingJobs": "jobs",
    "MaxParallelTrainingJobs": "parallel",
    "MaxRuntimeInSeconds": "runtime_s",
}
_NUMBERS: Final = {"Continuous": float, "Integer": int}
_OWN: Final = (
    *("HyperParameterTuningJobConfig", "TrainingJobDefinition", "WarmStartConfig", "Tags"),
    "HyperParameterTuningJobName",
)
_JOB: Final = ("ModelName", "TransformInput", "TransformOutput", "TransformResources", "Tags")
_TRANSFORM: Final[Mapping[str, Mapping[str, str]]] = {
    "TransformInput": {
        "ContentType": "content_type",
        "CompressionType": "compression",
        "SplitType": "split",
    },
    "TransformOutput": {
        "S3OutputPath": "output_uri",
        "Accept": "accept",
        "AssembleWith": "assemble",
        "KmsKeyId": "output_kms_key",
    },
    "TransformResources": {
        "InstanceType": "instance_type",
        "InstanceCount": "instance_count",
        "VolumeKmsKeyId": "volume_kms_key",
    },
    "DataProcessing": {"InputFilter": "input_filter", "OutputFilter": "output_filter"},
}
_FILE: Final = re.compile(r"[^/]\.[A-Za-z]\w{1,8}$")
_WORDS: Final = ("compression", "split", "assemble")
"""Fields whose values are words, written otherwise here."""


def tuning(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the stage that sends a request for a tuning job."""
    config, definition = request["HyperParameterTuningJobConfig"], request["TrainingJobDefinition"]
    if set(config) - _CONFIG or set(config.get("ParameterRanges", {})) - _kinds():
        return None
    sent = training(definition)
    job = training_jobs.stage_of({k: v for k, v in sent.items() if k != "RoleArn"})
    extra = {key: value for key, value in request.items() if key not in _OWN}
    if own := job.pop("extra_request", {}):
        static = (
            {"StaticHyperParameters": own.pop("HyperParameters")}
            if "HyperParameters" in own
            else {}
        )
        extra["TrainingJobDefinition"] = {**own, **static}
    objective = config["HyperParameterTuningJobObjective"]
    stage = {
        **job,
        "kind": "tuning_job",
        "objective": {
            "metric": objective["MetricName"],
            "direction": "max" if objective["Type"] == "Maximize" else "min",
        },
        "ranges": _ranges(config.get("ParameterRanges", {})),
        "search": config["Strategy"].lower(),
        "limits": {_LIMITS[key]: value for key, value in config["ResourceLimits"].items()},
        "early_stopping": config.get("TrainingJobEarlyStoppingType") == "Auto",
        "end": _end(config.get("TuningJobCompletionCriteria", {})),
        "seed": config.get("RandomSeed"),
        "hyperband": _hyperband(config.get("StrategyConfig", {})),
        "warm_start": _warm(request.get("WarmStartConfig", {})),
        "tags": {each["Key"]: each["Value"] for each in request.get("Tags", [])},
        "extra_request": extra,
    }
    return {key: value for key, value in stage.items() if value or (value == 0 and key == "seed")}


def training(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of tuned jobs with the names of a training job's fields."""
    names = {"StaticHyperParameters": "HyperParameters"}
    if "InstanceType" in definition.get("HyperParameterTuningResourceConfig", {}):
        names["HyperParameterTuningResourceConfig"] = "ResourceConfig"
    return {names.get(key, key): value for key, value in definition.items()}


def _kinds() -> set[str]:
    return {f"{kind}ParameterRanges" for kind in ("Continuous", "Integer", "Categorical")}


def _ranges(given: Mapping[str, list[Mapping[str, Any]]]) -> dict[str, Any]:
    ranges: dict[str, Any] = {}
    for kind, entries in given.items():
        word = kind.removesuffix("ParameterRanges")
        for each in entries:
            if word == "Categorical":
                ranges[each["Name"]] = {"categorical": list(each["Values"])}
                continue
            low, high = (_NUMBERS[word](each[key]) for key in ("MinValue", "MaxValue"))
            scaling = {"scaling": _snake(each["ScalingType"])} if "ScalingType" in each else {}
            ranges[each["Name"]] = {word.lower(): [low, high], **scaling}
    return ranges


def _end(given: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in given.items():
        match key, value:
            case "TargetObjectiveMetricValue", _:
                made["objective"] = value
            case "BestObjectiveNotImproving", {"MaxNumberOfTrainingJobsNotImproving": count}:
                made["not_improving"] = count
            case "ConvergenceDetected", {"CompleteOnConvergence": "Enabled"}:
                made["converged"] = True
            case _:
                raise KeyError(key)
    return made


def _hyperband(given: Mapping[str, Any]) -> dict[str, Any]:
    names = {"MinResource": "min_resource", "MaxResource": "max_resource"}
    return {names[k]: v for k, v in given.get("HyperbandStrategyConfig", {}).items()}


def _warm(given: Mapping[str, Any]) -> dict[str, Any]:
    if not given:
        return {}
    types = {"IdenticalDataAndAlgorithm": "identical", "TransferLearning": "transfer"}
    parents = [p["HyperParameterTuningJobName"] for p in given["ParentHyperParameterTuningJobs"]]
    return {"parents": parents, "type": types[given["WarmStartType"]]}


def transform(
    request: Mapping[str, Any], model: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the stage that sends a request for a batch transform, of a model that it makes."""
    source = request["TransformInput"]["DataSource"]["S3DataSource"]
    if source.get("S3DataType", "S3Prefix") != "S3Prefix" or request.get("Tags"):
        return None
    stage: dict[str, Any] = {
        "kind": "batch_transform",
        **({"model_name": request["ModelName"]} if model is None else _kept(model)),
        "data": source["S3Uri"],
    }
    if isinstance(source["S3Uri"], str) and _FILE.search(source["S3Uri"]):
        stage["one_file"] = True
    for section, fields in _TRANSFORM.items():
        for key, value in request.get(section, {}).items():
            if key == "JoinSource":
                stage["join_input"] = value == "Input"
            elif key != "DataSource":
                stage[fields[key]] = _snake(value) if fields[key] in _WORDS else value
    if "BatchStrategy" in request:
        stage["strategy"] = _snake(request["BatchStrategy"])
    named = {"MaxPayloadInMB": "max_payload_mb", "MaxConcurrentTransforms": "max_concurrency"}
    stage |= {own: request[key] for key, own in named.items() if key in request}
    known = (*_JOB, *named, "BatchStrategy", "DataProcessing", "TransformJobName")
    extra = {key: value for key, value in request.items() if key not in known}
    if extra:
        stage["extra_request"] = {"CreateTransformJob": extra}
    return stage


def _kept(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model of the stage's own, which is there after the run, as that of a step is."""
    fields = serving.model(model)
    if "model_package" in fields:
        raise KeyError("ModelPackageName")
    return {**fields, "keep_model": True}


def _snake(word: str) -> str:
    """Return a word of the API's here: ``TFRecord`` is ``tf_record``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=TF)(?=R)", "_", word).lower()
