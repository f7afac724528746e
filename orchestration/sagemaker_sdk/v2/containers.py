"""The container of an estimator: a framework of a version, an image, or an algorithm."""

from __future__ import annotations

from typing import Any

from orchestration.errors import PipelineError
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.v2 import attributes
from orchestration.stages.training.container import Framework


def container(estimator: Any, findings: Findings) -> dict[str, Any]:
    """Return the fields of a training job that select its container.

    A framework's image is left out if our table gives the same one as the SDK; then the job can
    move to another region. Else its registry path is kept.
    """
    arn = getattr(estimator, "algorithm_arn", None)
    if arn is not None:
        return {"algorithm": arn}
    if not (estimator.instance_type or estimator.instance_groups):
        # It was refused; the SDK picks images by it.
        return {"image": getattr(estimator, "image_uri", None) or "unknown"}
    try:
        image: str = estimator.training_image_uri()
    except ValueError as error:
        findings.add("framework_version", f"is refused by the SDK: {error}")
        return {}
    framework = framework_of(estimator, findings)
    if framework is None or framework.version is None:
        return {"image": image, "framework": framework}
    for python in (framework.python_version, None):
        tried = framework.model_copy(update={"python_version": python})
        if _image(estimator, tried) == image:
            return {"framework": tried}
    return {"image": image, "framework": framework}


def framework_of(estimator: Any, findings: Findings) -> Framework | None:
    """Return the framework of a framework's estimator."""
    name = getattr(estimator, "_framework_name", None)
    if name is None:
        return None
    version = getattr(estimator, "framework_version", None)
    base = None
    if name == "huggingface":
        base = f"{estimator.base_framework_name}{estimator.base_framework_version or ''}"
    return findings.made(
        "framework",
        lambda: Framework(
            name=name,
            version=version,
            python_version=estimator.py_version if version is not None else None,
            base=base,
            model_dir=_model_dir(estimator) if name == "tensorflow" else None,
        ),
    )


def _model_dir(estimator: Any) -> Any:
    """Return the model_dir that the user set; not the run's S3 location set by ``fit()``."""
    model_dir = estimator.model_dir
    filled = (f"{estimator.output_path or ''}".rstrip("/"), estimator._current_job_name, "model")
    if attributes.fitted(estimator) and model_dir == "/".join(map(str, filled)):
        return None
    # Empty means the default, as in the SDK.
    return model_dir if model_dir or model_dir is False else None


def _image(estimator: Any, framework: Framework) -> str | None:
    """Return the image that a job with this framework gets."""
    from orchestration.sagemaker_sdk.v2.distributing import strategy_of
    from orchestration.stages.training.container import deciding_type
    from orchestration.strategies import image_distribution

    groups = estimator.instance_groups or ()
    types = tuple(group.instance_type for group in groups) or (estimator.instance_type,)
    strategy = strategy_of(estimator, Findings("estimator"))
    try:
        return framework.image(
            estimator.sagemaker_session.boto_region_name,
            deciding_type(types),
            image_distribution(strategy) if strategy is not None else None,
        )
    except PipelineError:
        return None
