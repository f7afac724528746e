"""The calls that Step Functions can wait for by itself.

https://docs.aws.amazon.com/step-functions/latest/dg/connect-sagemaker.html (read November 2026).
Only fields that have long been in use with an optimised integration are here: they lag behind the
API by many months, and a field one does not know fails the state. Any other request goes through
``aws-sdk`` and is polled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.backends.stepfunctions.calls.services import camel
from orchestration.expressions import Tree
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

NESTED: Final[Mapping[str, frozenset[str]]] = {
    "AlgorithmSpecification": frozenset(
        {
            *("TrainingImage", "AlgorithmName", "TrainingInputMode", "MetricDefinitions"),
            *("EnableSageMakerMetricsTimeSeries", "ContainerEntrypoint", "ContainerArguments"),
            "TrainingImageConfig",
        }
    ),
    "DataSource": frozenset({"S3DataSource", "FileSystemDataSource"}),
    "S3DataSource": frozenset(
        {
            *("S3DataType", "S3Uri", "S3DataDistributionType", "AttributeNames"),
            "InstanceGroupNames",
        }
    ),
    "OutputDataConfig": frozenset({"KmsKeyId", "S3OutputPath", "CompressionType"}),
    # Without TrainingPlanArn (2024), InstancePlacementConfig (2025), InstancePreferences (2026).
    "ResourceConfig": frozenset(
        {
            *("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId"),
            *("KeepAlivePeriodInSeconds", "InstanceGroups"),
        }
    ),
    # Without MaxPendingTimeInSeconds (2024).
    "StoppingCondition": frozenset({"MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"}),
}
"""Of objects inside a request that the API has added fields to: those that integrations take."""


_MAPS: Final = frozenset({"HyperParameters", "Environment"})


def is_synchronous(call: Call) -> bool:
    """Return whether ``.sync`` does everything that the call asks for."""
    operation, until = call.operation, call.until
    if operation.service != "sagemaker" or operation.name not in FIELDS or until is None:
        return False
    job = operation.name.removeprefix("Create")
    poll, name = until.poll, f"{job}Name"
    return (
        operation.request.keys() <= FIELDS[operation.name]
        and not any(_newer(operation.request))
        and not call.outputs
        and (poll.service, poll.name) == ("sagemaker", f"Describe{job}")
        and poll.request == {name: operation.request.get(name)}
        and until.status == (f"{job}Status",)
        and until.success == {"Completed"}
        and until.failure == {"Failed", "Stopped"}
        and until.gone is None
    )


def _newer(tree: Tree) -> Iterator[str]:
    """Yield the fields inside a request that a ``.sync`` integration may not know."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name in NESTED and isinstance(value, Mapping):
                yield from value.keys() - NESTED[name]
            # The keys of maps are named by users.
            if name not in _MAPS:
                yield from _newer(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _newer(value)


def optimised(operation: Operation) -> str:
    """Return the resource of a Task that starts a job and waits for its end."""
    return f"arn:aws:states:::{operation.service}:{camel(operation.name)}.sync"
