"""Calls of the SageMaker Python SDK, written as training jobs: what a user who moves would write.

The recorded calls are Python; the names in them stand for the small classes below, which only hold
what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration import Pipeline, Source
from orchestration.strategies.distribution import from_distribution

SOURCE = Path(__file__).parent / "src_train"
ROLE = "arn:aws:iam::123456789012:role/SageMakerRole"
DEFAULTS = {
    "framework_version": "2.2.0",
    "py_version": "py310",
    "instance_count": 2,
    "instance_type": "ml.p4d.24xlarge",
}


class TrainingInput:
    def __init__(self, uri: str, **further: Any) -> None:
        names = {"s3_data_type": "data_type"}
        self.channel = {"uri": uri, **{names.get(k, k): v for k, v in further.items()}}


class FileSystemInput:
    def __init__(self, system: str, kind: str, path: str, access: str) -> None:
        kinds = {"FSxLustre": "fsx_lustre", "EFS": "efs"}
        self.channel = {
            "kind": kinds[kind],
            "file_system_id": system,
            "path": path,
            "access": access,
        }


@dataclass
class InstanceGroup:
    instance_group_name: str
    instance_type: str
    instance_count: int


class ProfilerRule:
    @staticmethod
    def sagemaker(config: Any) -> Mapping[str, str]:
        return {"name": "ProfilerReport", "image": "evaluator"}


class _RuleConfigs:
    ProfilerReport = dict


def with_defaults(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in (DEFAULTS | given).items() if value is not ...}


@dataclass
class Bad:
    """A call as it was recorded: the estimator's class, its arguments, the inputs, and of fit()."""

    estimator: str
    arguments: dict[str, Any]
    inputs: Mapping[str, Any]
    fit: Mapping[str, Any]

    def build(self) -> Pipeline:
        """The pipeline that asks for the same; raises what is wrong with it."""
        given = dict(self.arguments)
        given.setdefault("entry_point", "train.py")
        stage: dict[str, Any] = {"kind": "training_job", "channels": self.inputs}
        further: dict[str, Any] = {"name": self.fit.get("job_name", "p")}
        for argument in list(given):
            if argument in given and argument in _TRANSLATIONS:
                _TRANSLATIONS[argument](given, stage, further, self.estimator)
        _frame(given, stage, self.estimator)
        assert not given, f"not translated: {given}"
        whole = {"workspace": "s3://bucket", "role": ROLE, "region": "us-west-2"}
        return Pipeline.parse({**whole, **further, "stages": {"train": stage}})


Given = dict[str, Any]


def _frame(given: Given, stage: Given, estimator: str) -> None:
    image = given.pop("image_uri", None)
    version, python = given.pop("framework_version", None), given.pop("py_version", None)
    if image is not None:
        stage["image"] = image
    if estimator != "Estimator":
        framework = {"name": estimator.lower(), "version": version, "python_version": python}
        stage["framework"] = framework
    cluster = stage.setdefault("cluster", {})
    cluster |= {k: given.pop(k) for k in ("instance_type", "instance_count") if k in given}


def _distribution(given: Given, stage: Given, further: Given, estimator: str) -> None:
    framework = "pytorch" if estimator == "Estimator" else estimator.lower()
    stage["strategy"] = from_distribution(given.pop("distribution"), framework=framework)


def _groups(given: Given, stage: Given, further: Given, estimator: str) -> None:
    stage.setdefault("cluster", {})["groups"] = [
        {
            "name": group.instance_group_name,
            "instance_type": group.instance_type,
            "instance_count": group.instance_count,
        }
        for group in given.pop("instance_groups")
    ]


def _source(given: Given, stage: Given, further: Given, estimator: str) -> None:
    stage["source"] = Source.at(SOURCE, given.pop("entry_point"))


def _spot(given: Given, stage: Given, further: Given, estimator: str) -> None:
    stage["checkpoints"] = {}
    stage["spot"] = {}
    if given.pop("use_spot_instances") and "max_wait" in given:
        stage["spot"] = {"max_wait_s": given.pop("max_wait")}


def _wait(given: Given, stage: Given, further: Given, estimator: str) -> None:
    if "use_spot_instances" not in given:
        wait = {"MaxWaitTimeInSeconds": given.pop("max_wait")}
        stage["extra_request"] = {"StoppingCondition": wait}


def _plain(field: str) -> Callable[[Given, Given, Given, str], None]:
    names = {"max_run": "max_runtime_s"}

    def translate(given: Given, stage: Given, further: Given, estimator: str) -> None:
        stage[names.get(field, field)] = given.pop(field)

    return translate


def _tags(given: Given, stage: Given, further: Given, estimator: str) -> None:
    stage["tags"] = {tag["Key"]: tag["Value"] for tag in given.pop("tags")}


def _keep_alive(given: Given, stage: Given, further: Given, estimator: str) -> None:
    seconds = given.pop("keep_alive_period_in_seconds")
    stage.setdefault("cluster", {})["keep_alive_s"] = seconds


def _profiler(given: Given, stage: Given, further: Given, estimator: str) -> None:
    stage["profiler"] = {"enabled": not given.pop("disable_profiler"), "rules": given.pop("rules")}


def _role(given: Given, stage: Given, further: Given, estimator: str) -> None:
    further["role"] = given.pop("role")


_TRANSLATIONS: dict[str, Callable[[Given, Given, Given, str], None]] = {
    "distribution": _distribution,
    "instance_groups": _groups,
    "entry_point": _source,
    "use_spot_instances": _spot,
    "max_wait": _wait,
    "max_run": _plain("max_run"),
    "hyperparameters": _plain("hyperparameters"),
    "environment": _plain("environment"),
    "tags": _tags,
    "keep_alive_period_in_seconds": _keep_alive,
    "disable_profiler": _profiler,
    "role": _role,
}


def read(call: str) -> Bad:
    """A recorded call: ``bad(name, Estimator, arguments, inputs, of fit)``."""

    def bad(
        name: str,
        estimator: str,
        arguments: dict[str, Any],
        inputs: Callable[[], Mapping[str, Any]] | None = None,
        fit: Mapping[str, Any] | None = None,
    ) -> Bad:
        channels = {"training": "s3://b/x"} if inputs is None else inputs()
        plain = {name: getattr(value, "channel", value) for name, value in channels.items()}
        return Bad(estimator, arguments, plain, fit or {})

    names: dict[str, Any] = {
        "bad": bad,
        "P": with_defaults,
        "SMDDP": {"smdistributed": {"dataparallel": {"enabled": True}}},
        "TD": {"torch_distributed": {"enabled": True}},
        "TrainingInput": TrainingInput,
        "FileSystemInput": FileSystemInput,
        "InstanceGroup": InstanceGroup,
        "ProfilerRule": ProfilerRule,
        "rule_configs": _RuleConfigs,
    }
    names |= {name: name for name in ("PyTorch", "TensorFlow", "MXNet", "Estimator")}
    found = eval(call, names)  # ours, from tests/data
    assert isinstance(found, Bad)
    return found
