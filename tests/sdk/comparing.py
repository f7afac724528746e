"""A job's request beside the SDK's, but for the differences that are listed with a reason.

Every listed difference has a function here that takes it out of both requests, and checks what
stands there instead. What is left has to be equal, field by field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from orchestration import TrainingJob
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.stages.packing import archive
from orchestration.stages.stage import Context
from tests.sdk.capture import BUCKET, REGION, ROLE, unpacked

WORKSPACE = "s3://workspace"
RUN = "0123456789ab"
CONTEXT = Context(pipeline="p", workspace=WORKSPACE, role=ROLE, region=REGION)
RUN_PLACE = f"{WORKSPACE}/{RUN}/train"


@dataclass
class Pair:
    """One job as the SDK sends it and as we do."""

    job: TrainingJob
    theirs: dict[str, Any]
    ours: dict[str, Any]
    uploads: Mapping[str, bytes]

    @property
    def default_output(self) -> bool:
        return self.job.output.uri is None


def request(job: TrainingJob) -> dict[str, Any]:
    """What a run sends."""
    return cast(dict[str, Any], evaluate(job.request(CONTEXT), Values({}, {}, run_token=RUN)))


def different(job: TrainingJob, theirs: Mapping[str, Any], uploads: Mapping[str, bytes]) -> Any:
    """What is left of both requests that is not equal: by field, theirs and ours."""
    pair = Pair(job, deepcopy(dict(theirs)), request(job), uploads)
    for take_out in LISTED.values():
        take_out(pair)
    fields = {**pair.theirs, **pair.ours}
    return {
        field: (pair.theirs.get(field), pair.ours.get(field))
        for field in fields
        if pair.theirs.get(field) != pair.ours.get(field)
    }


def _job_name(pair: Pair) -> None:
    pair.theirs.pop("TrainingJobName")
    assert pair.ours.pop("TrainingJobName") == f"p-train-{RUN}"


def _job_name_told(pair: Pair) -> None:
    theirs, ours = _hyperparameters(pair)
    theirs.pop("sagemaker_job_name", None)
    if (name := ours.pop("sagemaker_job_name", None)) is not None:
        assert json.loads(name) == f"p-train-{RUN}"


def _role(pair: Pair) -> None:
    pair.theirs.pop("RoleArn")
    assert pair.ours.pop("RoleArn") == ROLE


def _tags(pair: Pair) -> None:
    own = [tag for tag in pair.ours["Tags"] if tag["Key"].startswith("orchestration:")]
    assert len(own) == 3
    pair.ours["Tags"] = [tag for tag in pair.ours["Tags"] if tag not in own]


def _archive(pair: Pair) -> None:
    theirs, ours = _hyperparameters(pair)
    their_uri = theirs.pop("sagemaker_submit_directory", None)
    our_uri = ours.pop("sagemaker_submit_directory", None)
    if their_uri is None:
        assert our_uri is None
        return
    their_uri, our_uri = json.loads(their_uri), json.loads(our_uri)
    if pair.job.source is not None and isinstance(uri := pair.job.source.uri, str):
        name = uri.rpartition("/")[2]
        if pair.job.enable_network_isolation:
            their_uri = their_uri.replace("sourcedir.tar.gz", name)
        assert our_uri == their_uri.replace("S3://", "s3://")
    elif pair.job.enable_network_isolation:
        assert our_uri == their_uri
        _same_code(pair, _code_channel(pair.theirs), _code_channel(pair.ours))
    else:
        _same_code(pair, their_uri, our_uri)


def _same_code(pair: Pair, their_uri: str, our_uri: str) -> None:
    source = pair.job.source
    assert source is not None
    assert our_uri == f"{WORKSPACE}/source/{source.sha256}/sourcedir.tar.gz"
    place = Path(source.directory or source.archive or "")
    assert unpacked(archive(place, include=source.include)) == unpacked(pair.uploads[their_uri])


def _code_channel(sent: Mapping[str, Any]) -> str:
    [channel] = [each for each in sent["InputDataConfig"] if each["ChannelName"] == "code"]
    return str(channel["DataSource"]["S3DataSource"]["S3Uri"])


def _isolated_code(pair: Pair) -> None:
    if pair.job.enable_network_isolation and pair.job.source is not None:
        for sent in (pair.theirs, pair.ours):
            for channel in sent["InputDataConfig"]:
                if channel["ChannelName"] == "code" and pair.job.source.uri is None:
                    del channel["DataSource"]["S3DataSource"]["S3Uri"]
        if pair.job.input_mode == "Pipe":
            assert pair.ours["InputDataConfig"][-1].pop("InputMode") == "File"
            assert "InputMode" not in pair.theirs["InputDataConfig"][-1]


def _output(pair: Pair) -> None:
    _defaulted(pair, "OutputDataConfig")


def _hook_place(pair: Pair) -> None:
    _defaulted(pair, "DebugHookConfig")


def _profile_place(pair: Pair) -> None:
    _defaulted(pair, "ProfilerConfig")


def _defaulted(pair: Pair, field: str) -> None:
    """A place that is the SDK's default bucket there, and the run's in the workspace here."""
    theirs, ours = pair.theirs.get(field, {}), pair.ours.get(field, {})
    if pair.default_output and theirs.get("S3OutputPath") == f"s3://{BUCKET}/":
        del theirs["S3OutputPath"]
        assert ours.pop("S3OutputPath") == f"{RUN_PLACE}/output"


def _model_dir(pair: Pair) -> None:
    framework = pair.job.framework
    if framework is None or framework.name != "tensorflow" or framework.model_dir is not None:
        return
    theirs, ours = _hyperparameters(pair)
    if json.loads(theirs["model_dir"]).startswith("s3://"):
        assert json.loads(theirs.pop("model_dir")).endswith("/job-x/model")
        assert json.loads(ours.pop("model_dir")) == f"{RUN_PLACE}/model"


def _collections(pair: Pair) -> None:
    for sent in (pair.theirs, pair.ours):
        hook = sent.get("DebugHookConfig", {})
        if "CollectionConfigurations" in hook:
            hook["CollectionConfigurations"].sort(key=json.dumps)


def _detailed_rule(pair: Pair) -> None:
    for sent in (pair.theirs, pair.ours):
        for rule in sent.get("ProfilerRuleConfigurations", ()):
            if rule["RuleConfigurationName"].startswith("DetailedProfilerProcessingJobConfig"):
                rule["RuleConfigurationName"] = "DetailedProfilerProcessingJobConfig"


def _parallelism(pair: Pair) -> None:
    for values in _hyperparameters(pair):
        if "mp_parameters" in values:
            values["mp_parameters"] = json.loads(values["mp_parameters"])


def _enabled_as_text(pair: Pair) -> None:
    theirs, ours = _hyperparameters(pair)
    for name, text in theirs.items():
        if name.endswith("_enabled") and text == '"true"':
            assert ours[name] == "true"
            theirs[name] = "true"


def _processes_as_text(pair: Pair) -> None:
    theirs, ours = _hyperparameters(pair)
    name = "sagemaker_mpi_num_of_processes_per_host"
    if name in theirs and theirs[name] != ours[name]:
        assert theirs[name] in (f'"{ours[name]}"', f"{ours[name]}.0")
        theirs[name] = ours[name]


def _empty(pair: Pair) -> None:
    pair.theirs = _without_empty(pair.theirs)
    pair.ours = _without_empty(pair.ours)


def _without_empty(sent: Any) -> Any:
    if not isinstance(sent, dict):
        return sent
    cleaned = {key: _without_empty(value) for key, value in sent.items()}
    return {key: value for key, value in cleaned.items() if value not in ({}, [])}


def _hyperparameters(pair: Pair) -> tuple[dict[str, Any], dict[str, Any]]:
    return pair.theirs.get("HyperParameters", {}), pair.ours.get("HyperParameters", {})


LISTED: dict[str, Callable[[Pair], None]] = {
    "TrainingJobName": _job_name,
    "HyperParameters.sagemaker_job_name": _job_name_told,
    "RoleArn": _role,
    "Tags": _tags,
    "HyperParameters.sagemaker_submit_directory": _archive,
    "HyperParameters.mp_parameters": _parallelism,
    "HyperParameters.sagemaker_*_enabled": _enabled_as_text,
    "HyperParameters.sagemaker_mpi_num_of_processes_per_host": _processes_as_text,
    "InputDataConfig[code]": _isolated_code,
    "OutputDataConfig.S3OutputPath": _output,
    "DebugHookConfig.S3OutputPath": _hook_place,
    "ProfilerConfig.S3OutputPath": _profile_place,
    "HyperParameters.model_dir": _model_dir,
    "DebugHookConfig.CollectionConfigurations": _collections,
    "ProfilerRuleConfigurations[].RuleConfigurationName": _detailed_rule,
    "(empty fields)": _empty,
}
"""By the field of the difference, as :data:`~orchestration.sagemaker_sdk.DIFFERENCES` calls it."""
