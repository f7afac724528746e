"""Code and containers of models, as deployments may say them."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.errors import Problem
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.serving.model import FOUND_BY


def problems(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what keeps a model from being served by its code in its container."""
    framework, source = stage.framework, stage.source
    if stage.image is None and framework is None:
        yield Problem("image", "is needed; or a framework")
    elif None not in (stage.image, framework):
        yield Problem("framework", "there is an image already; remove one of them")
    if framework is not None and framework.model_dir is not None:
        yield Problem("framework.model_dir", "only training scripts receive this; remove it")
    if source is None:
        return
    if source.archive_only:
        message = "is an archive, which is not unpacked beside a model; give it a directory"
        yield Problem("source", message)
    if "/" in source.entry_point or not source.entry_point.endswith(".py"):
        yield Problem("source.entry_point", "expected a module at the top, as inference.py")
    if framework is not None and framework.base_framework.startswith("tensorflow"):
        message = "TensorFlow's container reads only code/ in the model; let training write it"
        yield Problem("source", message)
    for name in FOUND_BY:
        if name in stage.environment:
            yield Problem(f"environment.{name}", "the source sets it; remove it")
