"""The fields of a batch transform that makes the predictions to score."""

from __future__ import annotations

from orchestration.stages.serving.fields import TransformSettings
from orchestration.stages.training.container import Framework


class EvaluationTransform(TransformSettings):
    """A batch transform of the held-back data by each model, whose predictions are scored."""

    framework: Framework | None = None
    """Instead of an ``image``: AWS's own container that serves a framework."""
    model_archive: bool | None = None
    """Each model is a ``model.tar.gz``, not a directory; by default those of a ``tuning_job``
    are."""
