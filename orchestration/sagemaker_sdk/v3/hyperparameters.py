"""V3's hyperparameters, and what only the request has fields for."""

from __future__ import annotations

from typing import Any

from orchestration.sagemaker_sdk import hyperparameters
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.hyperparameters import as_json
from orchestration.sagemaker_sdk.v3.shapes import plain, setting


def read(trainer: Any, encoded: bool, findings: Findings) -> dict[str, Any]:
    """Return the hyperparameters, and fields that only the request has; ``encoded``: as JSON."""
    given = {
        name: _of_numpy(name, value, encoded, findings)
        for name, value in (setting(trainer, "hyperparameters") or {}).items()
    }
    original = hyperparameters.checked(given, findings)
    if encoded:
        for name in sorted(hyperparameters.TOOLKIT & original.keys()):
            findings.add(
                f"hyperparameters.{name}",
                "is set by the toolkit's own request, which this would contradict; remove it",
            )
            del original[name]
    extra: dict[str, Any] = {}
    if not encoded:
        own: dict[str, Any] = {name: _serialized(value) for name, value in original.items()}
    else:
        own, further = hyperparameters.split(as_json(original), encoded=True)
        extra = {"HyperParameters": further} if further else {}
    config = plain(setting(trainer, "training_image_config"))
    if config:
        extra["AlgorithmSpecification"] = {"TrainingImageConfig": config}
    placement = plain(setting(trainer.compute, "instance_placement_config"))
    if placement:
        extra["ResourceConfig"] = {"InstancePlacementConfig": placement}
    switches = {
        "InfraCheckConfig": "_infra_check_config",
        "RemoteDebugConfig": "_remote_debug_config",
        "SessionChainingConfig": "_session_chaining_config",
        "ModelPackageConfig": "model_package_config",
    }
    for field, attribute in switches.items():
        value = plain(setting(trainer, attribute))
        if value:
            extra[field] = value
    return {"hyperparameters": own, "extra_request": extra}


def _of_numpy(name: str, value: Any, encoded: bool, findings: Findings) -> Any:
    """Return a number of NumPy as the text that V3 makes of it, or what its drivers read in that.

    The text of a ``float32`` has fewer digits than its value.
    """
    if type(value).__module__ != "numpy" or isinstance(value, str | float):
        return value
    if getattr(value, "shape", None):
        findings.add(
            f"hyperparameters.{name}", "is an array, which V3 has no JSON for; use tolist()"
        )
    elif not encoded:
        return str(value)
    elif type(own := value.item()) in (int, float):
        return type(own)(str(value))
    return value.tolist()


def _serialized(value: Any) -> str:
    """Serialize a hyperparameter like V3: text unchanged, else JSON."""
    return value if isinstance(value, str) else as_json({"": value})[""]
