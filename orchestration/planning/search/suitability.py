"""Instance types that can't train a task, whatever the layout."""

from __future__ import annotations

from orchestration.catalog import Accelerator, Instance, accelerators
from orchestration.planning.cost.devices import device
from orchestration.planning.model.configuration import ConfigurationError
from orchestration.planning.search.answers.plans import Reason
from orchestration.planning.search.task import Task


def unsuitable(task: Task, instance: Instance) -> tuple[Reason, str] | None:
    """Return why an instance type can't train a task; ``None``: it can."""
    if instance.accelerator is None:
        return ("unknown", "training on CPUs can't be predicted")
    if instance.device_memory_gib is None:
        return ("unknown", "the memory of its devices is unknown")
    try:
        device(instance.accelerator)
    except ConfigurationError as error:
        return ("unknown", str(error))
    facts = accelerators()[instance.accelerator]
    if task.lora is not None and task.lora.bits and instance.family.startswith("trn"):
        # https://huggingface.co/docs/bitsandbytes/installation lists the devices.
        return ("support", f"bitsandbytes has no weights of {task.lora.bits} bits on {facts.name}")
    if peak_tflops(facts, task.precision) is None:
        return ("precision", f"{facts.name} has no {_format(task.precision)} matrix units")
    return None


def peak_tflops(facts: Accelerator, precision: str) -> float | None:
    """Return the dense peak of a device in a precision; ``None``: it has no such units."""
    match _format(precision):
        case "fp32":
            return facts.tf32_tflops or facts.fp32_tflops
        case "fp16":
            return facts.fp16_tflops
        case "fp8":
            return facts.fp8_tflops
        case _:
            return facts.bf16_tflops


def _format(precision: str) -> str:
    """Return the number format of matrix products."""
    if precision in ("fp8", "fp8_rowwise", "mxfp8"):
        return "fp8"
    return precision.partition("_")[0]
