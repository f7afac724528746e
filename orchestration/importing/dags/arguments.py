"""Arguments of operators: those that a stage says, has no need of, or leaves out.

They are those of the provider 9.39 (read November 2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.importing.dags.calls import COPIED, REQUESTS
from orchestration.importing.dags.operators import AUTO_ML, REGISTERED, SAGEMAKER

_SAID: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(SAGEMAKER, ("config",)),
    "LambdaInvokeFunctionOperator": ("function_name", "payload"),
    "SageMakerRegisterModelVersionOperator": REGISTERED,
    "SageMakerAutoMLOperator": AUTO_ML,
    "S3CopyObjectOperator": COPIED,
}
"""Arguments that steps say, where no table of requests has them."""
EVERYWHERE: Final = ("task_id", "dag", "verify", "wait_for_completion", "deferrable")
"""Arguments of all operators that mean nothing to a stage, which waits in its own way."""
_CHECKED: Final = ("check_interval",)
NEEDLESS: Final[Mapping[str, tuple[str, ...]]] = {
    "SageMakerTrainingOperator": (*_CHECKED, "print_log"),
    "SageMakerProcessingOperator": (*_CHECKED, "print_log"),
    "SageMakerTuningOperator": _CHECKED,
    "SageMakerTransformOperator": _CHECKED,
    "SageMakerEndpointOperator": _CHECKED,
    # The operators take a config, and never read it.
    "SageMakerAutoMLOperator": (*_CHECKED, "config"),
    "SageMakerRegisterModelVersionOperator": ("config",),
    "SageMakerStartPipelineOperator": (*_CHECKED, "verbose"),
    "GlueJobOperator": ("verbose", "waiter_delay", "job_poll_interval"),
    "AthenaOperator": ("sleep_time", "log_query"),
    "BatchOperator": ("poll_interval", "status_retries"),
    "StepFunctionStartExecutionOperator": ("waiter_delay",),
}
"""Arguments that say how often an operator looks and what it logs, by the operator."""


def left_out(operator: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments of an operator that its steps do not say, and that mean something."""
    request = REQUESTS.get(operator)
    said = {
        *EVERYWHERE,
        *NEEDLESS.get(operator, ()),
        *_SAID.get(operator, ()),
        *(() if request is None else request.said(arguments)),
    }
    yield from (name for name in arguments if name not in said)
