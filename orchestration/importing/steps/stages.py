"""Steps as stages: of their kind where that says all of the step, else as calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import ReferenceUseError
from orchestration.importing import training_jobs
from orchestration.importing.steps import jobs
from orchestration.importing.steps.calls import JOBS
from orchestration.importing.steps.conditions import Conditions
from orchestration.importing.steps.registrations import registration
from orchestration.importing.steps.serving import deployment
from orchestration.importing.steps.step import Step, snake
from orchestration.importing.steps.types import types
from orchestration.importing.steps.values import Values, outputs

_ROLES: Final = ("RoleArn", "ExecutionRoleArn")
_FOLDER: Final = "/opt/ml/processing"
_INPUT: Final = {
    "S3Uri": "uri",
    "LocalPath": "path",
    "S3DataType": "data_type",
    "S3DataDistributionType": "distribution",
}
_USUAL: Final = {"S3InputMode": "File", "S3CompressionType": "None"}
"""Of an input: what a processing job of ours sends, or AWS takes by default."""
_CLUSTER: Final = {
    "InstanceType": "instance_type",
    "InstanceCount": "instance_count",
    "VolumeSizeInGB": "volume_gib",
    "VolumeKmsKeyId": "volume_kms_key",
}
_NETWORK: Final = {
    "EnableNetworkIsolation": "enable_network_isolation",
    "EnableInterContainerTrafficEncryption": "encrypt_inter_container_traffic",
}


def stage_of(step: Step, values: Values) -> dict[str, Any] | None:
    """Return the stage that does what a step does; none where no stage can."""
    request = values.of(_told(step), step.request_path, step.stage)
    parts: dict[str, Mapping[str, Any]] = {}
    for each in step.parts:
        parts[each.kind] = values.of(_told(each), each.request_path, step.stage)
    for each, sent in ((step, request), *((part, parts[part.kind]) for part in step.parts)):
        for name, kind in types(each, sent):
            values.parameters[name].setdefault("type", kind)
    if step.kind == "Endpoint" and step.parts:
        request = {"EndpointName": values.named(step), **request}
    stage = None if step.stage in values.calls else _tried(step, request, parts)
    if stage is None:
        if outputs(step) and step.stage not in values.calls:
            values.untyped.setdefault(step.stage, "its inputs, outputs or machines have more")
        stage = _call(step, request, values)
    if stage is None:
        return None
    if "ForEach" in step.given:
        stage = {**stage, "for_each": values.of(step.given["ForEach"], step.path, step.stage)}
    condition = Conditions(values).when(step.branches, step.stage)
    return stage if condition is None else {"kind": stage.pop("kind"), "when": condition, **stage}


def _told(step: Step) -> Mapping[str, Any]:
    """Return the request of a step without the name of a job, which each run has its own of."""
    job = JOBS.get(step.kind)
    own = job is not None and job.stop is not None
    return {k: v for k, v in step.arguments.items() if not (own and job and k == job.named)}


def _tried(
    step: Step, request: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return the stage of the step's kind; none where the request has another form."""
    try:
        return _typed(step, request, parts)
    except (AttributeError, KeyError, TypeError, ValueError, ReferenceUseError):
        return None  # A reference, say, in the place of a list.


def _typed(
    step: Step, request: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    match step.kind:
        case "Training":
            own = {key: item for key, item in request.items() if key not in _ROLES}
            return training_jobs.stage_of(own)
        case "Processing":
            return _processing(request)
        case "Tuning":
            return jobs.tuning(request)
        case "Transform":
            return jobs.transform(request, parts.get("Model"))
        case "Endpoint" if parts:
            return deployment(parts["Model"], parts["EndpointConfig"], request)
        case "RegisterModel":
            return registration(request)
        case _:
            return None


def _processing(request: Mapping[str, Any]) -> dict[str, Any] | None:
    known = {
        "ProcessingResources",
        "AppSpecification",
        "ProcessingInputs",
        "ProcessingOutputConfig",
        "StoppingCondition",
        "Environment",
        "NetworkConfig",
        "ProcessingJobName",
        "Tags",
        *_ROLES,
    }
    inputs = _inputs(request.get("ProcessingInputs", []))
    results = _results(request.get("ProcessingOutputConfig", {}).get("Outputs", []))
    if inputs is None or results is None or len(request.get("ProcessingResources", {})) != 1:
        return None
    program, network = request["AppSpecification"], request.get("NetworkConfig", {})
    cluster = request["ProcessingResources"]["ClusterConfig"]
    if set(cluster) - set(_CLUSTER) or set(network) - {*_NETWORK, "VpcConfig"}:
        return None
    vpc = network.get("VpcConfig", {})
    stage = {
        "kind": "processing_job",
        "image": program.get("ImageUri"),
        "command": program.get("ContainerEntrypoint"),
        "arguments": program.get("ContainerArguments"),
        "inputs": inputs,
        "results": results,
        "cluster": {_CLUSTER[key]: value for key, value in cluster.items()},
        "environment": request.get("Environment"),
        "max_runtime_s": request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds"),
        "output_kms_key": request.get("ProcessingOutputConfig", {}).get("KmsKeyId"),
        **{_NETWORK[key]: network.get(key) for key in _NETWORK},
        "vpc": vpc
        and {"subnets": vpc.get("Subnets"), "security_groups": vpc.get("SecurityGroupIds")},
        "tags": {each["Key"]: each["Value"] for each in request.get("Tags", [])},
        "extra_request": {key: request[key] for key in request if key not in known},
    }
    return {key: value for key, value in stage.items() if value}


def _inputs(given: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    inputs: dict[str, Any] = {}
    for each in given:
        source = each.get("S3Input", {})
        if set(source) - {*_INPUT, *_USUAL} or "S3Uri" not in source or each.get("AppManaged"):
            return None
        if any(source.get(key, usual) != usual for key, usual in _USUAL.items()):
            return None
        name = snake(str(each.get("InputName")))
        if name in inputs or not str(source.get("LocalPath", "")).startswith(f"{_FOLDER}/"):
            return None
        fields = {_INPUT[key]: source[key] for key in _INPUT if key in source}
        inputs[name] = _plain(fields, f"{_FOLDER}/input/{name}", ("data_type", "distribution"))
    return inputs


def _results(given: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    results: dict[str, Any] = {}
    modes = {"EndOfJob": "end_of_job", "Continuous": "continuous"}
    for each in given:
        place = each.get("S3Output", {})
        name = snake(str(each.get("OutputName")))
        if set(place) - {"S3Uri", "LocalPath", "S3UploadMode"} or each.get("AppManaged"):
            return None
        if name in results or not str(place.get("LocalPath", "")).startswith(f"{_FOLDER}/"):
            return None
        fields = {"uri": place.get("S3Uri"), "path": place["LocalPath"]}
        mode = modes.get(place.get("S3UploadMode", "EndOfJob"))
        if mode is None:
            return None
        upload = {"upload": mode} if mode == "continuous" else {}
        results[name] = {**_plain(fields, f"{_FOLDER}/output/{name}", ()), **upload}
    return results


def _plain(fields: dict[str, Any], usual: str, defaults: tuple[str, ...]) -> dict[str, Any]:
    """Return fields without those that say what holds without them."""
    plain = {"data_type": "S3Prefix", "distribution": "FullyReplicated"}
    return {
        key: value
        for key, value in fields.items()
        if not (key == "path" and value == usual) and not (key in defaults and value == plain[key])
    }


def _call(step: Step, request: Mapping[str, Any], values: Values) -> dict[str, Any] | None:
    asked = values.asked.get(step.stage, {})
    if step.kind in JOBS:
        job = JOBS[step.kind]
        given = request.get(job.named) if step.keeps_names and job.stop is None else None
        own = {key: value for key, value in request.items() if key != job.named}
        stage = job.call(given or values.named(step), own)
        if given:
            del stage["exists"]  # It may be another run's.
        if asked:
            stage["poll"]["outputs"] = dict(asked)
        return stage
    match step.kind:
        case "RegisterModel":
            return {
                "kind": "aws_call",
                "service": "sagemaker",
                "operation": "CreateModelPackage",
                "request": dict(request),
                **({"results": dict(asked)} if asked else {}),
            }
        case "Lambda":
            values.sent |= dict.fromkeys(_alone(request))
            function = values.of(step.given["FunctionArn"], step.path, step.stage)
            rest = values.of(step.given.get("Rest", {}), step.request_path, step.stage)
            return {
                "kind": "aws_call",
                "service": "lambda",
                "operation": "Invoke",
                "request": {"FunctionName": function, "Payload": dict(request), **rest},
                **({"results": dict(asked)} if asked else {}),
            }
        case "Fail":
            error = {key: request[key] for key in ("error",) if key in request}
            return {"kind": "fail", **error, "cause": request.get("ErrorMessage", "")}
        case "Pause" | "Approval":
            return _waiting(step, request)
        case "Call":
            return _any_call(step, request, asked)
        case "EMR" if "ClusterId" in request and "StepConfig" in request:
            return _emr(step, request)
        case _:
            return None


def _waiting(step: Step, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stage that waits for a time, or for a person."""
    if step.kind == "Pause":
        return {"kind": "pause", "duration_s": request["Seconds"]}
    hours = {"answer_within_h": request["Hours"]} if "Hours" in request else {}
    notify = {"notify": {"sns_topic": request["TopicArn"]}} if "TopicArn" in request else {}
    return {"kind": "approval", "question": request["Question"], **notify, **hours}


def _alone(value: Any) -> Iterator[str]:
    """Yield the parameters that are values of their own, and no parts of texts."""
    match value:
        case {"parameter": str(name)}:
            yield name
        case {"join": _}:
            return
        case Mapping():
            for item in value.values():
                yield from _alone(item)
        case list():
            for item in value:
                yield from _alone(item)


def _any_call(step: Step, request: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
    stage: dict[str, Any] = {
        "kind": "aws_call",
        "service": step.given["Service"],
        "operation": step.given["Operation"],
        "request": dict(request),
    }
    poll = _asking(step.given.get("Poll", {}), step.stage)
    results = poll.pop("results", {})
    if poll:
        stage["poll"] = {**poll, **({"outputs": dict(asked)} if asked else {})}
    else:
        results |= asked
    return {**stage, **({"results": results} if results else {})}


def _asking(poll: Any, stage: str) -> Any:
    """Return the questions about what a stage starts, with its own results in them."""
    match poll:
        case {"ref": str(output)}:
            return {"ref": f"{stage}.{output}"}
        case Mapping():
            return {key: _asking(item, stage) for key, item in poll.items()}
        case list():
            return [_asking(item, stage) for item in poll]
        case _:
            return poll


def _emr(step: Step, request: Mapping[str, Any]) -> dict[str, Any]:
    own = {"Name": step.name, "ActionOnFailure": "CONTINUE", **request["StepConfig"]}
    cluster = request["ClusterId"]
    ids = {"ClusterId": cluster, "StepId": {"ref": f"{step.stage}.step_id"}}
    return {
        "kind": "aws_call",
        "service": "emr",
        "operation": "AddJobFlowSteps",
        "request": {"JobFlowId": cluster, "Steps": [own]},
        "results": {"step_id": "StepIds[0]"},
        "poll": {
            "operation": "DescribeStep",
            "request": ids,
            "status": "Step.Status.State",
            "success": ["COMPLETED"],
            "failure": ["FAILED", "CANCELLED", "INTERRUPTED"],
            "reason": "Step.Status.FailureDetails.Reason",
        },
    }
