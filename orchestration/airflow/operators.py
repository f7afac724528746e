"""The operators of a pipeline's tasks, by the names that specifications give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator
from airflow.providers.amazon.aws.utils.mixins import aws_template_fields

from orchestration.airflow.control import ChooseOperator, InputsOperator, JoinOperator
from orchestration.airflow.ending.outcome import OutcomeOperator
from orchestration.airflow.leftovers import LeftoversOperator
from orchestration.airflow.links import FileSystemLink
from orchestration.airflow.sagemaker import (
    EndpointConfigOperator,
    EndpointOperator,
    ModelOperator,
    ProcessingOperator,
    TrainingOperator,
    TransformOperator,
    TuningOperator,
)
from orchestration.airflow.tasks import StepsMixin
from orchestration.expressions import Json

__all__ = [
    "ChooseOperator",
    "EndpointConfigOperator",
    "EndpointOperator",
    "FileSystemOperator",
    "InputsOperator",
    "JoinOperator",
    "LeftoversOperator",
    "ModelOperator",
    "OutcomeOperator",
    "ProcessingOperator",
    "StepsOperator",
    "TrainingOperator",
    "TransformOperator",
    "TuningOperator",
]


class _Configured(AwsBaseOperator[AwsBaseHook]):
    """Shows a request in the UI, as the provider's SageMaker operators do."""

    aws_hook_class = AwsBaseHook
    template_fields: Sequence[str] = aws_template_fields("config")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}

    def __init__(self, *, config: Mapping[str, Json], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config


class StepsOperator(StepsMixin, _Configured):
    """Steps for which the Amazon provider has no operator of its own."""


class FileSystemOperator(StepsOperator):
    """Steps that create a file system, or wait for one."""

    operator_extra_links = (FileSystemLink(),)
