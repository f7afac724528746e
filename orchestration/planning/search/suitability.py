"""Whether an instance type can train a task at all, before anything is predicted."""

from __future__ import annotations

from orchestration.catalog import Accelerator, Instance, accelerators
from orchestration.planning.cost.devices import device
from orchestration.planning.model.configuration import ConfigurationError
from orchestration.planning.search.plans import Reason
from orchestration.planning.search.task import Task


def unsuitable(task: Task, one: Instance) -> tuple[Reason, str] | None:
    """Why an instance type is out of the question; ``None``: it is not."""
    if one.accelerator is None:
        return ("not known", "there is no model of training on CPUs")
    if one.device_memory_gib is None:
        return ("not known", "the memory of its devices is not known")
    try:
        device(one.accelerator)
    except ConfigurationError as error:
        return ("not known", str(error))
    facts = accelerators()[one.accelerator]
    if peak_tflops(facts, task.precision) is None:
        return ("precision", f"{facts.name} has no {_format(task.precision)} matrix units")
    return None


def peak_tflops(facts: Accelerator, precision: str) -> float | None:
    """The dense peak of a device in a precision; ``None``: it has no such units."""
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
    """The numbers that are multiplied."""
    if precision in ("fp8", "fp8_rowwise", "mxfp8"):
        return "fp8"
    return precision.partition("_")[0]
