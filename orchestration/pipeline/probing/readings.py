"""Measurements, read from what SageMaker says of training jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

if TYPE_CHECKING:
    from orchestration.planning.model.configuration import Configuration
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.layouts import Layout

_MEMORY: Final = re.compile(
    r"out of memory|OutOfMemory|failed to allocate|RESOURCE_EXHAUSTED", re.IGNORECASE
)
"""Messages of PyTorch, TensorFlow and the Neuron runtime where a device's memory is not enough."""


class Way(Protocol):
    """A way to train: a plan, or what a job has done."""

    @property
    def instance_type(self) -> str:
        """The type of all instances."""

    @property
    def instance_count(self) -> int:
        """The number of instances."""

    @property
    def layout(self) -> Layout:
        """The layout of the model."""

    @property
    def configuration(self) -> Configuration:
        """All that predictions depend on."""


def measurement(
    plan: Way, job: Mapping[str, Any], *, region: str | None, source: Literal["probe", "run"]
) -> Measurement | None:
    """Return what a job measured of a plan; ``None``: it reported nothing.

    `job`: the answer of ``DescribeTrainingJob``, without which nothing is known of its end.
    """
    from orchestration.planning.model.measurements import Measurement, model_digest
    from orchestration.planning.search.measured.known import measured_layout

    figures = {each["MetricName"]: each["Value"] for each in job.get("FinalMetricDataList") or ()}
    step = figures.get("orchestration:step_time_s")
    gib = figures.get("orchestration:peak_memory_gib")
    lacking = ran_out_of_memory(job)
    if not lacking and not step:
        return None
    c = plan.configuration
    return Measurement(
        date=job["CreationTime"].date(),
        source=source,
        job=job["TrainingJobName"],
        region=region,
        image=job["AlgorithmSpecification"].get("TrainingImage"),
        model=model_digest(c.model),
        instance_type=plan.instance_type,
        instance_count=plan.instance_count,
        layout=measured_layout(plan.layout),
        sequence=c.sequence,
        global_batch=c.global_batch,
        micro_batch=c.micro_batch,
        recompute=c.recompute,
        offload=c.offload,
        precision=c.precision,
        optimizer=c.optimizer,
        step_time_s=None if lacking else step,
        peak_memory_gib=None if lacking else gib or None,
        out_of_memory=lacking,
        billable_s=job.get("BillableTimeInSeconds"),
    )


def ran_out_of_memory(job: Mapping[str, Any]) -> bool:
    """Return whether a job failed because a device's memory was not enough."""
    failed = job.get("TrainingJobStatus") == "Failed"
    return failed and _MEMORY.search(str(job.get("FailureReason", ""))) is not None
