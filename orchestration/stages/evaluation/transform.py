"""The fields of a batch transform that makes the predictions to score."""

from __future__ import annotations

from orchestration.stages.serving.fields import TransformSettings
from orchestration.stages.training.container import Framework
from orchestration.stages.values import Source


class EvaluationTransform(TransformSettings):
    """A batch transform of the held-back data by each model, whose predictions are scored."""

    framework: Framework | None = None
    """Instead of an ``image``: AWS's own container that serves a framework."""
    source: Source | None = None
    """Code of ``model_fn`` and so on, which lies beside each model; its entry point is a module at
    the top of its folder. A champion has its own."""
    model_archive: bool | None = None
    """Each model is a ``model.tar.gz``, not a directory; by default those of a ``tuning_job``
    are."""
