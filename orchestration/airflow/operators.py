"""The operators of a pipeline's tasks, by the names that specifications give them."""

from __future__ import annotations

from orchestration.airflow.aws import AwsCallOperator, ReadOperator
from orchestration.airflow.control import (
    ChooseOperator,
    FailOperator,
    InputsOperator,
    JoinOperator,
    OutputsOperator,
    RequireOperator,
    WaitOperator,
)
from orchestration.airflow.loops import CollectOperator, ItemsOperator
from orchestration.airflow.sagemaker import (
    EndpointConfigOperator,
    EndpointOperator,
    ModelOperator,
    ProcessingOperator,
    TrainingOperator,
    TransformOperator,
)

__all__ = [
    "AwsCallOperator",
    "ChooseOperator",
    "CollectOperator",
    "EndpointConfigOperator",
    "EndpointOperator",
    "FailOperator",
    "InputsOperator",
    "ItemsOperator",
    "JoinOperator",
    "ModelOperator",
    "OutputsOperator",
    "ProcessingOperator",
    "ReadOperator",
    "RequireOperator",
    "TrainingOperator",
    "TransformOperator",
    "WaitOperator",
]
