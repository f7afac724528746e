"""Operators of the Amazon provider that send one request, and those that no stage stands for.

The arguments are those of the provider 9.39 (read November 2026).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestration.importing.dags.texts import is_text, together
from orchestration.importing.steps.calls import POLLS

_BATCH: Final = (
    *("job_name", "job_definition", "job_queue", "container_overrides", "array_properties"),
    *("node_overrides", "ecs_properties_override", "eks_properties_override", "share_identifier"),
    *("scheduling_priority_override", "parameters", "retry_strategy", "tags"),
)
_ATHENA: Final = {"query": "QueryString", "workgroup": "WorkGroup"}
_PIPELINE: Final = {
    "pipeline_name": "PipelineName",
    "display_name": "PipelineExecutionDisplayName",
    "pipeline_params": "PipelineParameters",
}
_SQS: Final = {
    "sqs_queue": "QueueUrl",
    "message_content": "MessageBody",
    "message_attributes": "MessageAttributes",
    "delay_seconds": "DelaySeconds",
    "message_group_id": "MessageGroupId",
    "message_deduplication_id": "MessageDeduplicationId",
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _text(value: Any) -> Any:
    """Return an object as the text of its JSON; what only a run knows as it is."""
    known = isinstance(value, Mapping | list) and "{'Get': " not in str(value)
    return json.dumps(value) if known and "Std:Join" not in str(value) else value


def _pairs(value: Any, key: str = "Name") -> Any:
    if not isinstance(value, Mapping) or is_text(value):
        return value
    return [{key: name, "Value": each} for name, each in value.items()]


def _attributes(value: Any) -> Any:
    """Return the attributes of a message, each of the type that its value has."""
    if not isinstance(value, Mapping) or is_text(value):
        return None
    made = {name: _attribute(each) for name, each in value.items()}
    return None if None in made.values() else made


def _attribute(value: Any) -> Any:
    match value:
        case str() | {"Get": _} | {"Std:Join": _}:
            return {"DataType": "String", "StringValue": value}
        case int() | float() if not isinstance(value, bool):
            return {"DataType": "Number", "StringValue": str(value)}
        case list() if isinstance(_text(value), str):
            return {"DataType": "String.Array", "StringValue": _text(value)}
        case _:
            return None


def _objects(keys: Any) -> Any:
    every = [keys] if isinstance(keys, str) else keys
    return {"Objects": [{"Key": key} for key in every]} if isinstance(every, list) else keys


@dataclass(frozen=True, slots=True)
class Request:
    """The request that an operator sends."""

    service: str
    operation: str
    fields: Mapping[str, str]
    """The API's field of each argument; a dot leads into an object."""
    made: Mapping[str, Callable[[Any], Any]] | None = None
    """Arguments that the operator sends in another form; None where that is not known."""
    needs: tuple[str, ...] = ()
    """Arguments without which it is another request."""
    never: tuple[str, ...] = ()
    """Arguments with which it is another request."""

    def step(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the step; nothing where the operator sends another request."""
        if not all(arguments.get(each) for each in self.needs):
            return None
        if any(arguments.get(each) for each in self.never):
            return None
        request: dict[str, Any] = {}
        for name, field in self.fields.items():
            if (value := self._value(name, arguments)) is None:
                continue
            *outer, last = field.split(".")
            inner = request
            for each in outer:
                inner = inner.setdefault(each, {})
            inner[last] = value
        called = {"Service": self.service, "Operation": self.operation, "Arguments": request}
        poll = POLLS.get((self.service, self.operation))
        return {"Type": "Call", **called, **({} if poll is None else {"Poll": poll})}

    def said(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """Yield the arguments that the request says."""
        for name in arguments:
            known = arguments[name] is None or self._value(name, arguments) is not None
            if name in self.never or (name in self.fields and known):
                yield name

    def _value(self, name: str, arguments: Mapping[str, Any]) -> Any:
        value = arguments.get(name)
        made = (self.made or {}).get(name)
        return value if value is None or made is None else made(value)


REQUESTS: Final[Mapping[str, Request]] = {
    "SnsPublishOperator": Request(
        "sns",
        "Publish",
        {
            "target_arn": "TopicArn",
            "message": "Message",
            "subject": "Subject",
            "message_group_id": "MessageGroupId",
            "message_deduplication_id": "MessageDeduplicationId",
            "message_attributes": "MessageAttributes",
        },
        made={"message_attributes": _attributes},
    ),
    "SqsPublishOperator": Request("sqs", "SendMessage", _SQS),
    "EventBridgePutEventsOperator": Request(
        "events", "PutEvents", {"entries": "Entries", "endpoint_id": "EndpointId"}
    ),
    "GlueJobOperator": Request(
        "glue", "StartJobRun", {"job_name": "JobName", "script_args": "Arguments"}
    ),
    "AthenaOperator": Request(
        "athena",
        "StartQueryExecution",
        {
            **_ATHENA,
            "database": "QueryExecutionContext.Database",
            "catalog": "QueryExecutionContext.Catalog",
            "output_location": "ResultConfiguration.OutputLocation",
        },
    ),
    "BatchOperator": Request(
        "batch",
        "SubmitJob",
        {name: _camel(name) for name in _BATCH},
        needs=("job_name", "job_definition", "job_queue"),
        never=("job_id",),
    ),
    "StepFunctionStartExecutionOperator": Request(
        "stepfunctions",
        "StartExecution",
        {"state_machine_arn": "stateMachineArn", "name": "name", "state_machine_input": "input"},
        made={"state_machine_input": _text},
        never=("is_redrive_execution",),
    ),
    "SageMakerStartPipelineOperator": Request(
        "sagemaker",
        "StartPipelineExecution",
        _PIPELINE,
        made={"pipeline_params": _pairs},
    ),
    "SageMakerDeleteModelOperator": Request(
        "sagemaker",
        "DeleteModel",
        {"config": "ModelName"},
        made={"config": lambda config: _within(config, "ModelName")},
    ),
    "SageMakerCreateExperimentOperator": Request(
        "sagemaker",
        "CreateExperiment",
        {"name": "ExperimentName", "description": "Description", "tags": "Tags"},
        made={"tags": lambda tags: _pairs(tags, "Key")},
    ),
    "S3DeleteObjectsOperator": Request(
        "s3",
        "DeleteObjects",
        {"bucket": "Bucket", "keys": "Delete"},
        made={"keys": _objects},
        needs=("bucket", "keys"),
    ),
    "S3ListOperator": Request(
        "s3",
        "ListObjectsV2",
        {"bucket": "Bucket", "prefix": "Prefix", "delimiter": "Delimiter"},
        never=("apply_wildcard",),
    ),
    "S3CopyObjectOperator": Request(
        "s3",
        "CopyObject",
        {"dest_bucket_name": "Bucket", "dest_bucket_key": "Key", "source": "CopySource"},
        needs=("source", "dest_bucket_name", "dest_bucket_key"),
    ),
}
_ENDS: Final = (
    *("Training", "Processing", "Transform", "Tuning", "Endpoint", "AutoML", "Pipeline"),
)
AWAITED: Final = (
    *(f"SageMaker{noun}Sensor" for noun in _ENDS),
    *("BatchSensor", "GlueJobSensor", "AthenaSensor", "StepFunctionExecutionSensor"),
)
"""Sensors of an end that the stage before them waits for."""
_TRIGGER: Final = "no stage waits for an object; a trigger starts a run when one comes"
WHY: Final[Mapping[str, str]] = {
    "EcsRunTaskOperator": "no stage sees the exit codes of a task's containers; start it by "
    "ecs:runTask.sync in a state machine of its own, with an aws_call of StartExecution",
    "S3KeySensor": _TRIGGER,
    "S3KeysUnchangedSensor": _TRIGGER,
    "SqsSensor": "no stage waits for a message; a trigger starts a run when an event comes",
    "S3CopyPrefixOperator": "a data_staging stage copies a prefix, and verifies that all came",
    "SageMakerConditionOperator": "a stage's when says whether it runs",
}
"""Ways out, for operators that no stage stands for."""


def _within(config: Any, name: str) -> Any:
    return config.get(name, config) if isinstance(config, Mapping) else config


COPIED: Final = ("source_bucket_name", "source_bucket_key", "source_version_id")
"""Arguments that name the source of a copy."""


def copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a copy with its source as one; the keys may be URIs."""
    keys: Sequence[tuple[str, str]] = (
        ("source_bucket_name", "source_bucket_key"),
        ("dest_bucket_name", "dest_bucket_key"),
    )
    made = dict(arguments)
    for bucket, key in keys:
        uri = made.get(key)
        if not made.get(bucket) and isinstance(uri, str) and uri.startswith("s3://"):
            made[bucket], _, made[key] = uri.removeprefix("s3://").partition("/")
    source = made.pop("source_bucket_name", None), made.pop("source_bucket_key", None)
    version = made.pop("source_version_id", None)
    is_known = version is None or isinstance(version, str) or is_text(version)
    if is_known and all(isinstance(each, str) and each for each in source):
        suffix = [] if version is None else ["?versionId=", version]
        made["source"] = together(["/".join(source), *suffix])
    return made
