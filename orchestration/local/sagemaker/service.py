"""The simulated SageMaker: all its operations together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from orchestration.local.decoding import Request
from orchestration.local.protocol import (
    Answer,
    JsonObject,
    Service,
    ServiceError,
    error_answer,
    not_simulated,
)
from orchestration.local.sagemaker.endpoints import Endpoints
from orchestration.local.sagemaker.jobs import Jobs
from orchestration.local.sagemaker.models import EndpointConfigs, Models
from orchestration.local.sagemaker.processing import ProcessingJob
from orchestration.local.sagemaker.tags import Tags
from orchestration.local.sagemaker.training import TrainingJob

if TYPE_CHECKING:
    from orchestration.local.wiring import Account

# Operations on what is simulated here; moto knows nothing of these resources.
_OURS = re.compile(
    r"(Training|Processing|Transform|HyperParameterTuning|AutoML|Labeling)Job|Endpoint"
    r"|InferenceComponent|^(Create|Describe|Delete|List)Models?$|Tags$"
)


class SageMaker(Service):
    """SageMaker: training, processing, models and endpoints. The rest is moto's."""

    name = "sagemaker"

    def __init__(self, account: Account) -> None:
        self._account = account
        self.tags = Tags(self._has)
        self.training = Jobs(account, TrainingJob)
        self.processing = Jobs(account, ProcessingJob)
        self._models = Models(account)
        self._configs = EndpointConfigs(account, self._models)
        self._endpoints = Endpoints(account, self._models, self._configs)
        super().__init__(
            {
                **self.training.operations(),
                **self.processing.operations(),
                **self._models.operations(),
                **self._configs.operations(),
                **self._endpoints.operations(),
                **self.tags.operations(),
            }
        )

    def handles(self, request: Request) -> bool:
        """Whether a call is for what is simulated here."""
        if request.operation.endswith("Tags"):
            arn = request.parameters.get("ResourceArn", "")
            return bool(re.search(r":(training-job|processing-job|model|endpoint(-config)?)/", arn))
        return bool(_OURS.search(request.operation))

    def invoke(self, request: Request, environ: dict[str, Any], body: bytes) -> Answer:
        """InvokeEndpoint of `sagemaker-runtime`."""
        headers = {
            "Content-Type": environ.get("CONTENT_TYPE") or "application/json",
            "Accept": environ.get("HTTP_ACCEPT") or "application/json",
        }
        try:
            if request.operation != "InvokeEndpoint":
                raise not_simulated(request)
            return self._endpoints.invoke(request.parameters["EndpointName"], body, headers)
        except ServiceError as error:
            return error_answer("sagemaker-runtime", error)

    def logs(self, name: str) -> str:
        """What a job or an endpoint has written so far; empty where there is none."""
        for jobs in (self.training, self.processing):
            job = jobs.find(name)
            if job:
                return job.logs()
        return self._endpoints.logs(name) or ""

    def state(self) -> JsonObject:
        """Everything simulated here."""
        return {
            "TrainingJobs": self.training.state(),
            "ProcessingJobs": self.processing.state(),
            "Models": self._models.state(),
            "EndpointConfigs": self._configs.state(),
            "Endpoints": self._endpoints.state(),
        }

    def close(self) -> None:
        """Ask what runs to end."""
        self.training.close()
        self.processing.close()

    def _has(self, arn: str) -> bool:
        return bool(
            self.training.owner_of(arn)
            or self.processing.owner_of(arn)
            or self._models.has_arn(arn)
            or self._configs.has_arn(arn)
            or self._endpoints.has_arn(arn)
        )
