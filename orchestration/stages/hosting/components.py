"""An inference component: copies of a model on the instances of an endpoint that others share.

https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-deploy-models.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.stages.hosting.copies import CopyScaling
from orchestration.stages.values import Model, Text


class ManagedInstances(Model):
    """The number of an endpoint's instances, which SageMaker adapts to the copies on them."""

    min_instances: int = Field(default=1, ge=0, strict=True)
    """The number that no decrease goes below."""
    max_instances: int = Field(ge=1, strict=True)
    """The number that no increase goes above."""
    scale_in: Literal["idle_release", "consolidation"] | None = None
    """Instances to take away: those without copies, or also those whose copies fit on others."""

    def request(self) -> dict[str, Any]:
        """Return ``ManagedInstanceScaling``."""
        request: dict[str, Any] = {
            "Status": "ENABLED",
            "MinInstanceCount": self.min_instances,
            "MaxInstanceCount": self.max_instances,
        }
        if self.scale_in is not None:
            request["ScaleInPolicy"] = {"Strategy": self.scale_in.upper()}
        return request


class InferenceComponent(Model):
    """Copies of the model on an endpoint without a model of its own, and what each copy needs."""

    name: Text | None = None
    """By default the name that the endpoint would have: the pipeline's and the stage's."""
    copies: int = Field(default=1, ge=1, strict=True)
    """Containers with the model."""
    memory_mib: int = Field(ge=128, strict=True)
    """Memory of each copy."""
    cpus: float | None = Field(default=None, ge=0.25)
    """Processor cores of each copy."""
    accelerators: int | None = Field(default=None, ge=1, strict=True)
    """GPUs or Neuron devices of each copy."""
    autoscaling: CopyScaling | None = None
    """Let the number of copies follow the load; ``copies`` is that of a new component."""
    managed_instances: ManagedInstances | None = None
    """Let SageMaker adapt the number of instances of a new endpoint to the copies on it."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The fewest and the most copies that an update may find."""
        scaling = self.autoscaling
        if scaling is None:
            return self.copies, self.copies
        return scaling.min_copies, scaling.max_copies

    def problems(self, instances: object) -> Iterator[Problem]:
        """Yield bounds that exclude each other, or the instances that a new endpoint has."""
        if self.autoscaling is not None:
            yield from self.autoscaling.problems(self.copies)
        managed = self.managed_instances
        if managed is None:
            return
        least, most = managed.min_instances, managed.max_instances
        if most < least:
            message = f"expected at least min_instances ({least}), got {most}"
            yield Problem("inference_component.managed_instances.max_instances", message)
        elif isinstance(instances, int) and not max(1, least) <= instances <= most:
            message = f"expected {max(1, least)} to {most}, the managed_instances, got {instances}"
            yield Problem("instance_count", message)

    def requirements(self) -> dict[str, Any]:
        """Return ``ComputeResourceRequirements``."""
        asked = {
            "NumberOfCpuCoresRequired": self.cpus,
            "NumberOfAcceleratorDevicesRequired": self.accelerators,
            "MinMemoryRequiredInMb": self.memory_mib,
        }
        return {name: number for name, number in asked.items() if number is not None}
