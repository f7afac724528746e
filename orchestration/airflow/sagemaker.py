"""Instances of the Amazon provider's own SageMaker operators, mended.

They stay what the provider made them (links, connections, lineage, policies by class), with the
semantics of :class:`~orchestration.airflow.calling.CallMixin`.
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
    serialize,
)

from orchestration.airflow.calling import CallMixin

if TYPE_CHECKING:
    from airflow.sdk import Context

    from orchestration.airflow.jobs import Job


class TrainingOperator(CallMixin, SageMakerTrainingOperator):
    """A training job."""

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The job's datasets; asked for by a lineage backend only, so it is looked up here."""
        job = self.hook.conn.describe_training_job(TrainingJobName=self.config["TrainingJobName"])
        self.serialized_training_data = serialize(job)
        return super().get_openlineage_facets_on_complete(task_instance)


class ProcessingOperator(CallMixin, SageMakerProcessingOperator):
    """A processing job."""

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The job's datasets; asked for by a lineage backend only, so it is looked up here."""
        job = self.hook.conn.describe_processing_job(
            ProcessingJobName=self.config["ProcessingJobName"]
        )
        self.serialized_job = serialize(job)
        return super().get_openlineage_facets_on_complete(task_instance)


class TransformOperator(CallMixin, SageMakerTransformOperator):
    """A batch transform job."""

    def started(self, context: Context, job: Job) -> None:
        """Leave the link to the job's page."""
        name = str(job.request.parameters["TransformJobName"])
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


class ModelOperator(CallMixin, SageMakerModelOperator):
    """A model."""


class EndpointConfigOperator(CallMixin, SageMakerEndpointConfigOperator):
    """An endpoint configuration."""


class EndpointOperator(CallMixin, SageMakerEndpointOperator):
    """An endpoint, created or updated: what the pipeline decided, never one for the other."""

    def __init__(self, *, call: dict[str, Any], **kwargs: Any) -> None:
        operation = "update" if call["operation"] == "UpdateEndpoint" else "create"
        super().__init__(call=call, operation=operation, **kwargs)
