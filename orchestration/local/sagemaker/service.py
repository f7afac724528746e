"""The simulated SageMaker with all its operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    Answer,
    JsonObject,
    Request,
    Service,
    ServiceError,
    error_answer,
    not_simulated,
)
from orchestration.local.sagemaker.components.registry import Components
from orchestration.local.sagemaker.jobs.mounts import LustreFileSystems, Mounts
from orchestration.local.sagemaker.jobs.registry import Jobs
from orchestration.local.sagemaker.monitoring import MonitoringSchedules
from orchestration.local.sagemaker.registry.registries import Registries
from orchestration.local.sagemaker.serving.endpoints import Endpoints
from orchestration.local.sagemaker.serving.models import EndpointConfigs, Models
from orchestration.local.sagemaker.tags import Tags
from orchestration.local.sagemaker.tuning.registry import TuningJobs
from orchestration.local.sagemaker.workloads import Workloads

# Operations on resources that are simulated here.
_OURS = re.compile(
    r"(Training|Processing|Transform|HyperParameterTuning|AutoML|Labeling)Job|Endpoint"
    r"|InferenceComponent|ModelPackage|MonitoringSchedule|^(Create|Describe|Delete|List)Models?$|Tags$"
)

# What only reads; moto would accept all other calls and do nothing.
_OF_MOTO = re.compile(r"^(Describe|List|Search|BatchDescribe)")


class SageMaker(Service):
    """SageMaker: training, processing, models, endpoints, and the model registry."""

    name = "sagemaker"
    malformed = "ValidationException"

    def __init__(
        self,
        account: Account,
        lustre: LustreFileSystems,
        workloads: Workloads,
        tell_of_package: Callable[[JsonObject], None],
    ) -> None:
        mounts = Mounts(account, lustre)
        self.tags = tags = Tags(self._has)
        self.training = Jobs(
            "Training", lambda request: workloads.training(account, request, mounts), tags
        )
        self.processing = Jobs(
            "Processing", lambda request: workloads.processing(account, request), tags
        )
        self._registries = Registries(account, tags, tell_of_package)
        self._models = Models(account, tags, self._registries)
        self.transform = Jobs(
            "Transform",
            lambda request: workloads.transform(
                account, request, self._models.hosted(request["ModelName"]), workloads.model_host
            ),
            tags,
        )
        self.tuning = TuningJobs(account, mounts, self.training, tags)
        self._configs = EndpointConfigs(account, tags, self._models)
        self._endpoints = Endpoints(
            account, tags, self._models, self._configs, workloads.model_host
        )
        self._components = Components(
            account, tags, self._models, self._endpoints, workloads.model_host
        )
        self._schedules = MonitoringSchedules(account, tags, self._endpoints.state, self._configs)
        self.alarms = self._endpoints.alarms
        super().__init__(
            {
                **self.training.operations(),
                **self.processing.operations(),
                **self.transform.operations(),
                **self.tuning.operations(),
                **self._registries.operations(),
                **self._models.operations(),
                **self._configs.operations(),
                **self._endpoints.operations(),
                **self._components.operations(),
                **self._schedules.operations(),
                **self.tags.operations(),
            }
        )

    def handles(self, request: Request) -> bool:
        """Return whether a call is answered here, if only by saying that it is not simulated."""
        if request.operation.endswith("Tags"):
            arn = request.parameters.get("ResourceArn", "")
            return bool(
                re.search(
                    r":((training|processing|transform|hyper-parameter-tuning)-job"
                    r"|model(-package-group)?"
                    r"|endpoint(-config)?|inference-component|monitoring-schedule)/",
                    arn,
                )
            )
        if request.operation == "Search" and "ModelPackage" in request.parameters["Resource"]:
            return True
        return bool(_OURS.search(request.operation) or not _OF_MOTO.search(request.operation))

    @override
    def respond(self, request: Request) -> Answer:
        # Accounts share everything here but their model registries.
        with self._registries.called_by(request.account):
            return super().respond(request)

    def invoke(self, request: Request, environ: dict[str, Any], body: bytes) -> Answer:
        """Answer InvokeEndpoint and InvokeEndpointAsync of `sagemaker-runtime`."""
        headers = {
            "Content-Type": environ.get("CONTENT_TYPE") or "application/json",
            "Accept": environ.get("HTTP_ACCEPT") or "application/json",
        }
        try:
            if request.operation == "InvokeEndpointAsync":
                return self._endpoints.invoke_async(request.parameters, body, headers)
            if request.operation != "InvokeEndpoint":
                raise not_simulated(request)
            variant = environ.get("HTTP_X_AMZN_SAGEMAKER_TARGET_VARIANT")
            name = request.parameters["EndpointName"]
            component = environ.get("HTTP_X_AMZN_SAGEMAKER_INFERENCE_COMPONENT")
            if component is not None:
                return self._components.invoke(name, component, body, headers)
            return self._endpoints.invoke(name, body, headers, variant)
        except ServiceError as error:
            return error_answer("sagemaker-runtime", error)

    def logs(self, name: str) -> str:
        """Return the log of a job or an endpoint so far; empty if it does not exist."""
        for jobs in (self.training, self.processing, self.transform, self.tuning):
            job = jobs.find(name)
            if job:
                return job.logs()
        return self._endpoints.logs(name) or self._components.logs(name) or ""

    def progress(self) -> list[JsonObject]:
        """Return how far each job is that has not ended, with its name and tags."""
        return [
            {"name": job.name, "tags": job.request.get("Tags", []), **job.progress()}
            for jobs in (self.training, self.processing, self.transform, self.tuning)
            for job in jobs.under_way()
        ]

    def state(self) -> JsonObject:
        """Return everything that is simulated here."""
        return {
            "TrainingJobs": self.training.state(),
            "ProcessingJobs": self.processing.state(),
            "TransformJobs": self.transform.state(),
            "HyperParameterTuningJobs": self.tuning.state(),
            "ModelPackageGroups": self._registries.groups.state(),
            "ModelPackages": self._registries.packages.state(),
            "Models": self._models.state(),
            "EndpointConfigs": self._configs.state(),
            "Endpoints": self._endpoints.state(),
            "InferenceComponents": self._components.state(),
            "MonitoringSchedules": self._schedules.state(),
        }

    def close(self) -> None:
        """Ask all jobs to stop."""
        self.tuning.close()
        self.training.close()
        self.processing.close()
        self.transform.close()

    def _has(self, arn: str) -> bool:
        return bool(
            self.training.owner_of(arn)
            or self.processing.owner_of(arn)
            or self.transform.owner_of(arn)
            or self.tuning.owner_of(arn)
            or self._registries.groups.has_arn(arn)
            or self._models.has_arn(arn)
            or self._configs.has_arn(arn)
            or self._endpoints.has_arn(arn)
            or self._components.has_arn(arn)
            or self._schedules.has_arn(arn)
        )
