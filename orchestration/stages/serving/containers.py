"""Containers before and after a model's own, which SageMaker calls one after the other.

https://docs.aws.amazon.com/sagemaker/latest/dg/inference-pipelines.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import join
from orchestration.graph import Call
from orchestration.stages.endpoints import identity
from orchestration.stages.serving.model import FOUND_BY, ServedModel
from orchestration.stages.stage import Context, Stage
from orchestration.stages.training.container import Framework
from orchestration.stages.values import Model, Source, Text, s3_problem

MOST: Final = 15
"""Containers of a model: botocore's ContainerDefinitionList, 1.43."""


class Contained(Protocol):
    """The image and the code of a container, as stages and lists of containers name them."""

    @property
    def image(self) -> Text | None:
        """Its registry path."""

    @property
    def framework(self) -> Framework | None:
        """The framework whose image it has instead."""

    @property
    def source(self) -> Source | None:
        """Its code."""

    @property
    def environment(self) -> Mapping[str, Text]:
        """Its variables."""


class ServedContainer(Model):
    """A container before or after that of the model."""

    image: Text | None = None
    """The inference container, by its registry path."""
    framework: Framework | None = None
    """Instead: AWS's own container that serves a framework."""
    model_data: Text | None = None
    """S3 URI of a directory with its files, or of a ``model.tar.gz`` (``model_archive: true``).
    Without it, the ``source`` is what the container finds as its model."""
    model_archive: bool = False
    """``model_data`` is a ``model.tar.gz``, not a directory."""
    source: Source | None = None
    """Code of ``model_fn`` and so on; its entry point is a module at the top of its folder."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Its variables. ``SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT: text/csv`` asks AWS's containers for
    another content type than JSON on the way to the next container."""

    def problems(self) -> Iterator[Problem]:
        """Yield what keeps it from being started."""
        yield from of_image(self)
        yield from of_code(self)
        if self.model_data is not None:
            yield from s3_problem("model_data", self.model_data)
        elif self.model_archive:
            yield Problem("model_archive", "there is no model_data; remove it")

    def served(self, context: Context, instance_type: object) -> ServedModel:
        """Return it as SageMaker hosts it on machines of a type."""
        image = "" if self.image is None else self.image
        if self.framework is not None:
            image = self.framework.registry_path(context.region, instance_type, serves=True)
        return ServedModel(
            data=self.model_data,
            is_archive=self.model_archive,
            image=image,
            source=self.source,
            environment=self.environment,
        )


class SequenceFields(Stage):
    """The fields of containers around that of a stage's model."""

    preprocessing: tuple[ServedContainer, ...] = ()
    """Containers before the model's own, in their order: each one's answer is the next one's
    request. With the model's and those after it at most 15."""
    postprocessing: tuple[ServedContainer, ...] = ()
    """Containers after the model's own."""

    @property
    def others(self) -> Iterator[tuple[str, ServedContainer]]:
        """The containers beside the model's own, by their fields."""
        for field in ("preprocessing", "postprocessing"):
            for number, container in enumerate(getattr(self, field)):
                yield f"{field}[{number}]", container

    def problems_of_sequence(self) -> Iterator[Problem]:
        """Yield what keeps the containers from being called in sequence."""
        for path, container in self.others:
            for problem in container.problems():
                yield problem.within(path)
        count = len(self.preprocessing) + 1 + len(self.postprocessing)
        if count > MOST:
            field = "preprocessing" if self.preprocessing else "postprocessing"
            message = f"{count} containers with the model's own; the most is {MOST}"
            yield Problem(field, message)
        if count > 1 and getattr(self, "local", None) is not None:
            yield Problem("local", "one program cannot stand in for several containers; remove it")

    def problems_of_model(self, extra: Mapping[str, object]) -> Iterator[Problem]:
        """Yield the field of ``extra`` that ``CreateModel`` refuses beside what the stage sets.

        https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModel.html: a model has
        a ``PrimaryContainer`` or ``Containers``.
        """
        names = ("Containers", "PrimaryContainer")
        set_here, refused = names if self.preprocessing or self.postprocessing else names[::-1]
        if refused in extra:
            yield Problem(
                f"extra_request.CreateModel.{refused}",
                f"the stage sets {set_here}, and a model has only one of the two; remove it",
            )

    def around(self, model: ServedModel, context: Context, instance_type: object) -> ServedModel:
        """Return a model with the containers before and after its own."""
        before, after = (
            tuple(each.served(context, instance_type) for each in containers)
            for containers in (self.preprocessing, self.postprocessing)
        )
        return replace(model, before=before, after=after)

    def fingerprint(self, data: Text, *, is_archive: bool) -> tuple[tuple[Call, ...], Text]:
        """Return the calls that look at the files of all containers, and what tells them apart.

        ``data`` are those of the model, which the first call looks at. The calls are in no order.
        """
        name = f"{self.name}.fingerprint"
        first, content = identity.fingerprint(name, data, is_archive=is_archive)
        calls, contents = [first], [content]
        for path, each in self.others:
            if each.model_data is not None:
                field, number = path.rstrip("]").split("[")
                call, content = identity.fingerprint(
                    f"{name}_{field}_{number}", each.model_data, is_archive=each.model_archive
                )
                calls.append(call)
                contents.append(content)
        if len(contents) == 1:
            return (first,), contents[0]
        return tuple(calls), join(*(part for each in contents for part in (" ", each)))


def of_image(container: Contained) -> Iterator[Problem]:
    """Yield that a container has no image, or two."""
    image, framework = container.image, container.framework
    if image is None and framework is None:
        yield Problem("image", "is needed; or a framework")
    elif None not in (image, framework):
        yield Problem("framework", "there is an image already; remove one of them")


def of_code(container: Contained) -> Iterator[Problem]:
    """Yield what keeps a container from finding its code."""
    framework, source = container.framework, container.source
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
        if name in container.environment:
            yield Problem(f"environment.{name}", "the source sets it; remove it")
