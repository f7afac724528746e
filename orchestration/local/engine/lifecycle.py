"""Executions: their names, their times, the scope of variables, and the query language.

In moto 5.2.5 the query language of a definition is kept on a class, so that one bad definition
spoils later ones; an Assign takes effect before the state's Output; StartExecution needs a name;
an execution that is stopped at once has no environment yet, and none keeps the error and the cause
that StopExecution gives; SendTaskFailure loses the cause; and DescribeStateMachineForExecution
gives the newest definition; and DescribeExecution tells an output that is a text without its
quotation marks, and leaves out one that is null.
Tests in `tests/local/engine/` (`test_engine.py`: query languages, variables, names, tokens;
`test_history.py`: stopped executions) and
`tests/deploy/test_rerunning.py` (definitions) fail without this module.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.stepfunctions.exceptions import InvalidExecutionInput
from moto.stepfunctions.parser.asl.component.common.assign.assign_decl import AssignDecl
from moto.stepfunctions.parser.asl.component.state import state as state_module
from moto.stepfunctions.parser.asl.eval.program_state import ProgramStopped
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
from moto.stepfunctions.parser.backend.execution import (
    BaseExecutionWorkerCommunication,
    Execution,
)
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.responses import StepFunctionResponse

from orchestration.local.engine.quotas import LARGEST_BYTES, check_variables
from orchestration.local.engine.seams import replace
from orchestration.local.engine.tasks.values import iso

_STARTS_WITHIN_S = 60.0
_PENDING = "_pending_assignments"
_REASON = ("error", "cause")
_GIVEN = "_given_reason"


class _PerInstance:
    """A list for each instance, where the class had one list for all."""

    def __get__(self, instance: Any, owner: Any = None) -> list[Any]:
        if instance is None:
            return []
        scopes: list[Any] = instance.__dict__.setdefault("_scopes", [])
        return scopes


def _assign(self: Any, env: Any) -> None:
    """Evaluate the assignments, which take effect at the end of the state.

    A state's Output still sees the values from before its own Assign.
    """
    values: dict[str, Any] = {}
    for binding in self.declaration_bindings:
        binding.eval(env=env)
        values.update(env.stack.pop())
    check_variables(env, values)
    setattr(env.variable_store, _PENDING, values)


def _commit(env: Any) -> None:
    values = getattr(env.variable_store, _PENDING, {})
    setattr(env.variable_store, _PENDING, {})
    for name, value in values.items():
        env.variable_store.set(variable_identifier=name, variable_value=value)


def _commit_after(method: Any) -> Any:
    def eval_state_output(self: Any, env: Any) -> None:
        method(self, env)
        _commit(env)

    return eval_state_output


def _subclasses(cls: type) -> list[type]:
    children: list[type] = cls.__subclasses__()
    return [cls, *(below for child in children for below in _subclasses(child))]


def _start_details(method: Any) -> Any:
    def get_start_execution_details(self: Any) -> Any:
        details = method(self)
        details.start_time = iso(details.start_time)
        return details

    return get_start_execution_details


def _start(method: Any) -> Any:
    def start_execution(
        self: Any,
        state_machine_arn: str,
        name: str | None = None,
        execution_input: str | None = None,
        trace_header: Any = None,
    ) -> Any:
        if execution_input and len(execution_input.encode()) > LARGEST_BYTES:
            raise InvalidExecutionInput("The input is longer than 262144 bytes")
        return method(
            self, state_machine_arn, name or str(uuid.uuid4()), execution_input, trace_header
        )

    return start_execution


def _stop(self: Any, stop_date: Any, error: str | None, cause: str | None) -> None:
    # A worker that has only just started has no environment to stop yet.
    end = time.monotonic() + _STARTS_WITHIN_S
    while (self.env is None or self.env.program_state() is None) and time.monotonic() < end:
        time.sleep(0.005)
    self.env.set_stop(stop_date=stop_date, cause=cause, error=error)


def _stop_execution(self: Any) -> ActionResult:
    backend, arn = self.stepfunction_backend, self._get_param("executionArn")
    setattr(backend.describe_execution(arn), _GIVEN, [self._get_param(n) for n in _REASON])
    return ActionResult({"stopDate": backend.stop_execution(arn).stop_date})


def _stopped_with_reason(method: Any) -> Any:
    def stop(self: Any, stop_date: Any, **_: Any) -> None:
        method(self, stop_date, **dict(zip(_REASON, getattr(self, _GIVEN), strict=True)))

    return stop


def _ended_with_reason(method: Any) -> Any:
    def reflect(self: Any) -> None:
        method(self)
        state = self.execution.exec_worker.env.program_state()
        if isinstance(state, ProgramStopped):
            self.execution.error, self.execution.cause = state.error, state.cause

    return reflect


def _send_task_failure(self: Any) -> Any:
    self.stepfunction_backend.send_task_failure(
        self._get_param("taskToken"), self._get_param("error"), self._get_param("cause")
    )
    return EmptyResult()


def _describe_for_execution(self: Any) -> ActionResult:
    """Describe the state machine as it was when the execution started."""
    backend, arn = self.stepfunction_backend, self._get_param("executionArn")
    machine = backend.describe_execution(arn).state_machine
    revision = {} if machine.revision is None else {"revisionId": machine.revision}
    return ActionResult(
        {
            **revision,
            "stateMachineArn": machine.arn,
            "name": machine.name,
            "definition": machine.definition,
            "roleArn": machine.roleArn,
            "updateDate": machine.creation_date,
        }
    )


def _described(method: Any) -> Any:
    def describe_execution(self: Any) -> Any:
        answered = method(self)
        execution = self.stepfunction_backend.describe_execution(self._get_param("executionArn"))
        if answered.result["status"] == "SUCCEEDED":
            answered.result["output"] = json.dumps(
                execution.output, separators=(",", ":"), ensure_ascii=False
            )
        return answered

    return describe_execution


def install() -> None:
    """Repair the engine's executions."""
    described = StepFunctionResponse.describe_execution
    replace(StepFunctionResponse, "describe_execution", _described(described))
    replace(StepFunctionResponse, "send_task_failure", _send_task_failure)
    replace(StepFunctionResponse, "describe_state_machine_for_execution", _describe_for_execution)
    replace(Preprocessor, "_query_language_per_scope", _PerInstance())
    replace(AssignDecl, "_eval_body", _assign)
    for cls in _subclasses(state_module.CommonStateField):
        if "_eval_state_output" in vars(cls):
            method = vars(cls)["_eval_state_output"]
            replace(cls, "_eval_state_output", _commit_after(method))
    details = Execution.get_start_execution_details
    replace(Execution, "get_start_execution_details", _start_details(details))
    start = StepFunctionsParserBackend.start_execution
    replace(StepFunctionsParserBackend, "start_execution", _start(start))
    replace(ExecutionWorker, "stop", _stop)
    replace(StepFunctionResponse, "stop_execution", _stop_execution)
    replace(Execution, "stop", _stopped_with_reason(Execution.stop))
    ending = BaseExecutionWorkerCommunication._reflect_execution_status
    replace(
        BaseExecutionWorkerCommunication, "_reflect_execution_status", _ended_with_reason(ending)
    )
