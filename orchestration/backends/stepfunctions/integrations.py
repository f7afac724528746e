"""Which calls Step Functions can wait for by itself.

https://docs.aws.amazon.com/step-functions/latest/dg/connect-sagemaker.html (read November 2026).
Only fields that have long been in use with an optimised integration are here: they lag behind the
API by many months, and a field one does not know fails the state. Any other request goes through
``aws-sdk`` and is polled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.backends.stepfunctions.services import camel
from orchestration.graph import Call, Operation

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "CreateTrainingJob": frozenset(
        {
            *("TrainingJobName", "AlgorithmSpecification", "RoleArn", "InputDataConfig"),
            *("OutputDataConfig", "ResourceConfig", "VpcConfig", "StoppingCondition", "Tags"),
            *("HyperParameters", "Environment", "EnableNetworkIsolation"),
            *("EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining"),
            *("CheckpointConfig", "DebugHookConfig", "DebugRuleConfigurations"),
            *("TensorBoardOutputConfig", "ExperimentConfig", "ProfilerConfig"),
            *("ProfilerRuleConfigurations", "RetryStrategy"),
        }
    ),
    "CreateProcessingJob": frozenset(
        {
            *("ProcessingJobName", "AppSpecification", "RoleArn", "ProcessingInputs"),
            *("ProcessingOutputConfig", "ProcessingResources", "StoppingCondition", "Tags"),
            *("Environment", "ExperimentConfig", "NetworkConfig"),
        }
    ),
    "CreateTransformJob": frozenset(
        {
            *("TransformJobName", "ModelName", "TransformInput", "TransformOutput"),
            *("TransformResources", "BatchStrategy", "DataProcessing", "Environment", "Tags"),
            *("ExperimentConfig", "MaxConcurrentTransforms", "MaxPayloadInMB"),
        }
    ),
}
"""Of each job: the fields that its ``.sync`` integration takes."""


def is_synchronous(call: Call) -> bool:
    """Whether ``.sync`` does all that the call asks for."""
    operation, until = call.operation, call.until
    if operation.service != "sagemaker" or operation.name not in FIELDS or until is None:
        return False
    job = operation.name.removeprefix("Create")
    poll, name = until.poll, f"{job}Name"
    return (
        operation.request.keys() <= FIELDS[operation.name]
        and not call.outputs
        and (poll.service, poll.name) == ("sagemaker", f"Describe{job}")
        and poll.request == {name: operation.request.get(name)}
        and until.status == (f"{job}Status",)
        and until.success == {"Completed"}
        and until.failure == {"Failed", "Stopped"}
        and until.gone is None
    )


def optimised(operation: Operation) -> str:
    """The resource of a Task that starts a job and waits for its end."""
    return f"arn:aws:states:::{operation.service}:{camel(operation.name)}.sync"
