"""The container of a training job: a framework's, your own, or an algorithm's."""

from __future__ import annotations

from typing import Any, Literal

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Json
from orchestration.refs import Expression
from orchestration.stages.values import Model, Text
from orchestration.strategies.images import Distribution


class Framework(Model):
    """A framework and its version: AWS's own container for it, unless there is an ``image``."""

    name: str
    """As AWS's images are called: ``pytorch``, ``tensorflow``, ``huggingface``, ``xgboost``, …"""
    version: str | None = None
    """``2.8.0``; for ``huggingface`` that of transformers. Not needed beside an ``image``."""
    python_version: str | None = None
    """``py312``; only where there are several."""
    base: str | None = None
    """The framework that ``huggingface`` is built on: ``pytorch2.5.1``."""
    processor: Literal["cpu", "gpu"] | None = None
    """Required if the instance type is a reference, from which no image follows."""
    model_dir: Text | Literal[False] | None = None
    """The folder that TensorFlow scripts write to (``--model_dir``): by default a place of the run
    in S3, or ``/opt/ml/model`` under MPI; ``false``: they receive no such argument."""

    @property
    def base_framework(self) -> str:
        """``pytorch`` where it is built on ``pytorch2.5.1``, else its own name."""
        if self.base is None:
            return self.name
        return self.base.rstrip("0123456789.")

    @property
    def base_version(self) -> str | None:
        """``2.5.1`` where it is built on ``pytorch2.5.1``, else its own version."""
        if self.base is None:
            return self.version
        return self.base.removeprefix(self.base_framework) or None

    @property
    def toolkit(self) -> tuple[str | None, str | None]:
        """The framework that its container is built on, and its version, as far as they are known.

        ``huggingface 4.49.0`` is ``pytorch 2.5.1``.
        """
        if self.name != "huggingface" or self.version is None:
            return self.base_framework, self.base_version
        from orchestration.strategies import images

        return images.built_on(self.version, self.base) or (self.base_framework, self.base_version)

    def registry_path(
        self,
        region: str | None,
        instance_type: object,
        distribution: Distribution | None = None,
        *,
        serves: bool = False,
    ) -> str:
        """Return the registry path of its image for training, or of the one that ``serves`` models.

        Raises :class:`~orchestration.errors.PipelineError` where there is none.
        """
        if region is None:
            message = (
                "has its image in the pipeline's region, which is not said; give the pipeline "
                "region: us-west-2, or this stage an image"
            )
            raise PipelineError([Problem("framework", message)])
        if isinstance(instance_type, Expression) and self.processor is None:
            message = (
                "is needed (cpu or gpu): the instance type, which else tells the image, is known "
                "in the run only"
            )
            raise PipelineError([Problem("framework.processor", message)])
        try:
            return self.image(region, instance_type, distribution, serves=serves)
        except PipelineError as error:
            fields = {
                "framework": "name",
                "python": "python_version",
                **dict.fromkeys(("instance_type", "region", "distribution", "scope"), ""),
            }
            raise PipelineError(
                [
                    Problem(f"framework.{fields.get(p.field, p.field)}".rstrip("."), p.message)
                    for p in error.problems
                ]
            ) from error

    def image(
        self,
        region: str,
        instance_type: object,
        distribution: Distribution | None,
        *,
        serves: bool = False,
    ) -> str:
        """Return the registry path of its image in a region, with the catalogue's own errors."""
        from orchestration.strategies import images

        known = instance_type if isinstance(instance_type, str) else None
        return images.uri(
            self.name,
            self.version,
            region=region,
            python=self.python_version,
            instance_type=known if self.processor is None else None,
            processor=self.processor,
            scope="inference" if serves else None,
            distribution=distribution,
            base=self.base,
        )


def deciding_type(types: tuple[str | Expression[Any], ...]) -> str | Expression[Any] | None:
    """The instance type that decides on the image: the first with accelerators, else the first.

    So does the SageMaker Python SDK with heterogeneous clusters.
    """
    from orchestration.catalog import instance

    for name in types:
        known = instance(name) if isinstance(name, str) else None
        if known is not None and known.devices:
            return name
    return types[0] if types else None


def as_text(value: Json) -> str:
    """A hyperparameter for a container without the toolkit: as the SageMaker Python SDK sends it.

    That is Python's ``str()``, so ``true`` becomes ``True``.
    """
    return value if isinstance(value, str) else str(value)
