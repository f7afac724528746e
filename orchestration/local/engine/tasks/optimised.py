"""The optimised integrations: SageMaker's, with `.sync`, and those of nested executions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task import state_task_factory
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_callback,
    state_task_service_sfn,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import (
    ResourceCondition,
)
from moto.stepfunctions.parser.asl.eval.program_state import ProgramEnded, ProgramRunning

from orchestration.local.account.activity import Activity
from orchestration.local.engine.machines.versions import unqualified
from orchestration.local.engine.seams import replace
from orchestration.local.engine.tasks import fields
from orchestration.local.engine.tasks.aws_sdk import AwsSdk
from orchestration.local.engine.tasks.calls import ACTIVITY, Call, await_end
from orchestration.local.engine.tasks.clients import assumed
from orchestration.local.engine.tasks.services import SYNC_JOBS, api_name
from orchestration.local.engine.tasks.values import json_value, milliseconds

# How soon the end of a job or of a nested execution is noticed.
_POLL_S = 0.05


class _Plain(state_task_service_callback.StateTaskServiceCallback):
    """A `.sync` integration that polls.

    That of moto 5.2.5 needs a callback endpoint, which is stale after a retry: it then times out
    although the job goes on
    (`test_sync_retries_catch_the_error_and_return_the_job`).
    """

    def _eval_integration_pattern(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: Any,
        state_credentials: Any,
    ) -> None:
        arguments: dict[str, Any] = {
            "env": env,
            "resource_runtime_part": resource_runtime_part,
            "normalised_parameters": normalised_parameters,
            "state_credentials": state_credentials,
        }
        if self.resource.condition == ResourceCondition.WaitForTaskToken:
            super()._eval_integration_pattern(**arguments)
            return
        is_first = self.resource.condition == ResourceCondition.Sync
        build = self._build_sync_resolver if is_first else self._build_sync2_resolver
        resolve: Any = build(**arguments)
        while env.is_running():
            result = resolve()
            if result:
                env.stack.append(result)
                return
            time.sleep(_POLL_S)
        # A task that reached its own time-out leaves its job running, as on AWS.
        if not isinstance(env.program_state(), (ProgramEnded, ProgramRunning)):
            self._abandon(env, resource_runtime_part, normalised_parameters)

    def _abandon(self, env: Any, resource_runtime_part: Any, parameters: Any) -> None:
        """Stop the job of an execution that was stopped."""


class SageMaker(_Plain):
    """`arn:aws:states:::sagemaker:operation` and `….sync`."""

    def __init__(self) -> None:
        patterns: Any = {ResourceCondition.Sync}
        super().__init__(supported_integration_patterns=patterns)

    def _validate_service_integration_is_supported(self) -> None:
        """Accept every integration: `definitions` has checked them."""

    def _call(self, operation: str, resource_runtime_part: Any) -> Call:
        role, credentials = getattr(self, "_role", ""), getattr(self, "_assumed", None)
        return Call("sagemaker", operation, resource_runtime_part.region, role, credentials)

    def _before_eval_execution(
        self,
        env: Any,
        resource_runtime_part: Any,
        raw_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        self._role = env.aws_execution_details.role_arn
        self._assumed = assumed(env, state_credentials)
        call = self._call(api_name(self.resource.api_action), resource_runtime_part)
        fields.check(env, call, raw_parameters, "sync")
        super()._before_eval_execution(
            env, resource_runtime_part, raw_parameters, state_credentials
        )

    def _eval_service_task(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        call = self._call(api_name(self.resource.api_action), resource_runtime_part)
        env.stack.append(json_value(call.send(normalised_parameters), time=milliseconds))

    def _from_error(self, env: Any, ex: Exception) -> Any:
        if not isinstance(ex, ClientError):
            return super()._from_error(env=env, ex=ex)
        error = ex.response["Error"]
        metadata = ex.response["ResponseMetadata"]
        modelled = type(ex) is not ClientError
        name = f"{error['Code']}Exception" if modelled else "AmazonSageMakerException"
        cause = (
            f"{error['Message']} (Service: AmazonSageMaker; "
            f"Status Code: {metadata['HTTPStatusCode']}; Error Code: {error['Code']}; "
            f"Request ID: {metadata.get('RequestId', '')}; Proxy: null)"
        )
        return self._failure(env, CustomErrorName(f"SageMaker.{name}"), cause)

    def _failure(self, env: Any, name: Any, cause: str) -> FailureEvent:
        failed = TaskFailedEventDetails(
            error=name.error_name,
            cause=cause,
            resource=self._get_sfn_resource(),
            resourceType=self._get_sfn_resource_type(),
        )
        details: Any = {"taskFailedEventDetails": failed}
        return FailureEvent(
            env=env,
            error_name=name,
            event_type=HistoryEventType.TaskFailed,
            event_details=details,
        )

    def _build_sync_resolver(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: Any,
        state_credentials: Any,
    ) -> Callable[[], Any]:
        env.stack.pop()
        job = SYNC_JOBS[api_name(self.resource.api_action)]
        name = normalised_parameters[job.name_member]
        call = self._call(job.describe, resource_runtime_part)

        def resolve() -> Any:
            # AWS receives an event when a job ends; nothing polls here either.
            await_end(env, (call.operation, name))
            try:
                response = call.send({job.name_member: name})
            except ClientError as error:
                if _passes(error):
                    return None
                raise
            described = json_value(response, time=milliseconds)
            status = described[job.status_member]
            if status == "Completed":
                return described
            if status in ("Failed", "Stopped"):
                failed = StatesErrorName(typ=StatesErrorNameType.StatesTaskFailed)
                cause = json.dumps(described, separators=(",", ":"))
                raise FailureEventException(self._failure(env, failed, cause))
            return None

        return resolve

    def _abandon(self, env: Any, resource_runtime_part: Any, parameters: Any) -> None:
        job = SYNC_JOBS[api_name(self.resource.api_action)]
        call = self._call(job.stop, resource_runtime_part)
        try:
            call.send({job.name_member: parameters[job.name_member]})
        except ClientError:
            # It has ended in the meantime; AWS too promises only its best effort.
            return


class States(_Plain, state_task_service_sfn.StateTaskServiceSfn):
    """`arn:aws:states:::states:startExecution` and `….sync`, `….sync:2`."""

    def _normalise_parameters(self, parameters: Any, *args: Any, **kwargs: Any) -> None:
        super()._normalise_parameters(parameters, *args, **kwargs)
        parameters.setdefault("Name", str(uuid.uuid4()))
        for key in list(parameters):
            parameters[key[:1].lower() + key[1:]] = parameters.pop(key)

    def _eval_service_task(self, env: Any, *args: Any, **kwargs: Any) -> None:
        super()._eval_service_task(env, *args, **kwargs)
        env.stack.append(_capitalised(env.stack.pop()))

    def _normalise_response(self, response: Any, *_: Any, **__: Any) -> None:
        if isinstance(response, dict):
            renamed = _capitalised(response)
            response.clear()
            response.update(renamed)

    def _abandon(self, env: Any, resource_runtime_part: Any, parameters: Any) -> None:
        machine, name = parameters["stateMachineArn"], parameters["name"]
        arn = unqualified(machine).replace(":stateMachine:", ":execution:") + f":{name}"
        call = Call("stepfunctions", "StopExecution", resource_runtime_part.region)
        try:
            call.send({"executionArn": arn})
        except ClientError:
            return


def _passes(error: ClientError) -> bool:
    """Return whether an error of a poll is temporary, so that AWS would poll again."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or "Throttl" in error.response.get("Error", {}).get("Code", "")


def _capitalised(response: dict[str, Any]) -> dict[str, Any]:
    return {key[:1].upper() + key[1:]: json_value(value) for key, value in response.items()}


def install(activity: Activity) -> None:
    """Make the engine use these integrations; polls wait for the work that runs in an account."""
    ACTIVITY[:] = [activity]
    ours: dict[str, Callable[[], Any]] = {
        "aws-sdk": AwsSdk,
        "sagemaker": SageMaker,
        "states": States,
    }
    stock: Any = state_task_factory.state_task_service_for

    def state_task_service_for(service_name: str) -> Any:
        return ours[service_name]() if service_name in ours else stock(service_name)

    replace(state_task_factory, "state_task_service_for", state_task_service_for)
