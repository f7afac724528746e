"""`arn:aws:states:::aws-sdk:service:operation`: any operation of any service.

Beside what the documentation says, from recordings of Step Functions: a blob is the JSON of the
value that the state gives, so that text arrives in quotes; where the API takes a string, an object
or a list is sent as its JSON; the cause of an error ends with the number of attempts, and names
S3's extended request id.
<https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html>
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk,
)

from orchestration.local.engine.tasks import fields
from orchestration.local.engine.tasks.calls import LONGEST_POLL_S, Call, await_end
from orchestration.local.engine.tasks.clients import assumed
from orchestration.local.engine.tasks.services import (
    ERROR_PREFIXES,
    api_name,
    boto_name,
    service_id,
)
from orchestration.local.engine.tasks.values import from_member_names, json_value, to_member_names


class AwsSdk(state_task_service_aws_sdk.StateTaskServiceAwsSdk):
    """The integration of whole APIs."""

    @staticmethod
    def _normalise_service_error_name(service_name: str) -> str:
        return error_prefix(service_name)

    def _before_eval_execution(
        self,
        env: Any,
        resource_runtime_part: Any,
        raw_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        self._role = env.aws_execution_details.role_arn
        self._assumed = assumed(env, state_credentials)
        call = self._call(resource_runtime_part)
        fields.check(env, call, raw_parameters, "sdk")
        super()._before_eval_execution(
            env, resource_runtime_part, raw_parameters, state_credentials
        )

    def _call(self, resource_runtime_part: Any) -> Call:
        return Call(
            boto_name(self.resource.api_name),
            api_name(self.resource.api_action),
            resource_runtime_part.region,
            getattr(self, "_role", ""),
            getattr(self, "_assumed", None),
        )

    def _eval_service_task(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        call = self._call(resource_runtime_part)
        shape = call.model.input_shape
        request = to_member_names(normalised_parameters, shape)
        if len(request) == 1:
            (name,) = request.values()
            await_end(env, (call.operation, str(name)), LONGEST_POLL_S)
        response = call.send(sendable(request, shape))
        answer = from_member_names(response, call.model.output_shape)
        env.stack.append(json_value(answer))

    def _from_error(self, env: Any, ex: Exception) -> Any:
        if not isinstance(ex, ClientError):
            return super()._from_error(env=env, ex=ex)
        if ex.operation_name == "AssumeRole":
            # The specification's name for too few privileges; no recording of this is known.
            # https://states-language.net/spec.html#appendix-a
            cause = _cause("Sts", ex)
            return self._get_task_failure_event(env=env, error="States.Permissions", cause=cause)
        prefix = error_prefix(self.resource.api_name)
        name = self._normalise_exception_name(prefix, ex)
        return self._get_task_failure_event(env=env, error=name, cause=_cause(prefix, ex))


def _cause(prefix: str, error: ClientError) -> str:
    answer = error.response["ResponseMetadata"]
    details = [
        f"Service: {prefix}",
        f"Status Code: {answer['HTTPStatusCode']}",
        f"Request ID: {answer.get('RequestId') or uuid.uuid4()}",
    ]
    if prefix == "S3":
        extended = answer.get("HostId") or base64.b64encode(uuid.uuid4().bytes * 3).decode()
        details.append(f"Extended Request ID: {extended}")
    message = error.response["Error"]["Message"]
    return f"{message} ({', '.join(details)}) (SDK Attempt Count: 1)"


def error_prefix(service_name: str) -> str:
    """Return the service's name in error names: `S3`, `SageMakerRuntime`, `FSx`."""
    known = ERROR_PREFIXES.get(service_name.lower())
    if known:
        return known
    words = service_id(service_name).replace("-", " ").split()
    return "".join(w.capitalize() if w.isupper() else w[:1].upper() + w[1:] for w in words)


def sendable(value: Any, shape: Any) -> Any:
    """Encode the JSON of a state as an API takes it: blobs as bytes, texts as text."""
    if shape is None:
        return value
    kind = shape.type_name
    if kind == "structure" and isinstance(value, Mapping):
        return {key: sendable(item, shape.members.get(key)) for key, item in value.items()}
    if kind == "map" and isinstance(value, Mapping):
        return {key: sendable(item, shape.value) for key, item in value.items()}
    if kind == "list" and isinstance(value, list):
        return [sendable(item, shape.member) for item in value]
    if kind == "blob":
        return _json(value).encode()
    if kind == "string" and isinstance(value, (Mapping, list)):
        return _json(value)
    return value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
