"""A job's strategy as V3's launchers."""

from __future__ import annotations

import typing
from typing import Any

from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.training import TrainingJob
from orchestration.strategies import MPI, Horovod, NoStrategy, SMPv2, TorchDistributed


def launched(job: TrainingJob, trainer: Any, findings: Findings) -> Any:
    """Build the ``distributed`` of a trainer of class ``trainer``; ``None`` without a launcher."""
    strategy = job.distribution
    if isinstance(strategy, NoStrategy):
        return None
    if isinstance(strategy, TorchDistributed):
        return _launcher(trainer, "Torchrun", process_count_per_node=strategy.processes_per_host)
    if isinstance(strategy, SMPv2) and not strategy.extra_parameters:
        launcher = _launcher_class(trainer, "Torchrun")
        smp = class_of(launcher, "smp")
        return launcher(smp=smp(**strategy.parameters()))
    if isinstance(strategy, MPI | Horovod) and strategy.instance_group is None:
        counts = [each.instance_count for each in job.cluster.machines()]
        if counts == [1]:
            return _launcher(
                trainer,
                "MPI",
                process_count_per_node=strategy.processes_per_host,
                mpi_additional_options=(strategy.custom_mpi_options or "").split() or None,
            )
        findings.add(
            "strategy",
            f"{strategy.kind} starts its processes on each host; V3's MPI starts "
            "process_count_per_node of them in all, however many hosts there are",
        )
        return None
    findings.add("strategy", f"{strategy.kind} has no counterpart: V3 has Torchrun and MPI")
    return None


def _launcher(trainer: Any, name: str, **fields: Any) -> Any:
    return _launcher_class(trainer, name)(**{k: v for k, v in fields.items() if v is not None})


def _launcher_class(trainer: Any, name: str) -> Any:
    """Find a class of the SDK, which the caller has imported, from the trainer's fields."""
    known = {kind.__name__: kind for kind in class_of(trainer, "distributed").__subclasses__()}
    return known[name]


def class_of(model: Any, field: str) -> Any:
    """Return the class of a Pydantic model's field."""
    annotation = model.model_fields[field].annotation
    [kind] = [each for each in typing.get_args(annotation) if each is not type(None)]
    return kind
