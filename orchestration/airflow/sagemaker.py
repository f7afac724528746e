"""Instances of the Amazon provider's own SageMaker operators, mended.

They stay what the provider made them (links, connections, lineage, policies by class), with the
semantics of :class:`~orchestration.airflow.tasks.StepsMixin`.
"""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.links.sagemaker import SageMakerTransformJobLink
from airflow.providers.amazon.aws.operators.sagemaker import (
    SageMakerEndpointConfigOperator,
    SageMakerEndpointOperator,
    SageMakerModelOperator,
    SageMakerProcessingOperator,
    SageMakerTrainingOperator,
    SageMakerTransformOperator,
    SageMakerTuningOperator,
    serialize,
)

from orchestration.airflow.links import LogLink, PageLink, ReportLink
from orchestration.airflow.tasks import StepsMixin

if TYPE_CHECKING:
    from airflow.sdk import Context

    from orchestration.execution.effects import Started


class TrainingOperator(StepsMixin, SageMakerTrainingOperator):
    """A training job."""

    operator_extra_links = (PageLink(), LogLink())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The job's datasets; asked for by a lineage backend only, so it is looked up here."""
        job = self.hook.conn.describe_training_job(TrainingJobName=self.config["TrainingJobName"])
        self.serialized_training_data = serialize(job)
        return super().get_openlineage_facets_on_complete(task_instance)


class ProcessingOperator(StepsMixin, SageMakerProcessingOperator):
    """A processing job."""

    operator_extra_links = (PageLink(), LogLink(), ReportLink())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The job's datasets; asked for by a lineage backend only, so it is looked up here."""
        job = self.hook.conn.describe_processing_job(
            ProcessingJobName=self.config["ProcessingJobName"]
        )
        self.serialized_job = serialize(job)
        return super().get_openlineage_facets_on_complete(task_instance)


class TransformOperator(StepsMixin, SageMakerTransformOperator):
    """A batch transform job."""

    operator_extra_links = (  # type: ignore[assignment]  # the provider's type is of one link
        *SageMakerTransformOperator.operator_extra_links,
        PageLink(),
        LogLink(),
    )

    def started(self, context: Context, started: Started) -> None:
        """Leave the link to the job's page."""
        if started.request.operation != "CreateTransformJob":
            return  # A short step of the same task: the model.
        name = str(started.request.parameters["TransformJobName"])
        SageMakerTransformJobLink.persist(
            context=context,
            operator=self,
            region_name=self.hook.conn_region_name,
            aws_partition=self.hook.conn_partition,
            job_name=urllib.parse.quote(name, safe=""),
        )

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The job's datasets; asked for by a lineage backend only, so they are looked up here."""
        self.serialize_result(self.config["TransformJobName"])
        return super().get_openlineage_facets_on_complete(task_instance)


class TuningOperator(StepsMixin, SageMakerTuningOperator):
    """A hyperparameter tuning job."""

    operator_extra_links = (PageLink(),)


class ModelOperator(StepsMixin, SageMakerModelOperator):
    """A model."""


class EndpointConfigOperator(StepsMixin, SageMakerEndpointConfigOperator):
    """An endpoint configuration."""


class EndpointOperator(StepsMixin, SageMakerEndpointOperator):
    """An endpoint, created or updated: what the pipeline decides, never one for the other."""

    operator_extra_links = (PageLink(),)
