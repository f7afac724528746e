"""The trigger of a pipeline, as a user writes it: the events after which it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, StringConstraints, model_validator

from orchestration.expressions import Json
from orchestration.graph import TriggerSpec
from orchestration.pipeline.triggers import patterns, values
from orchestration.pipeline.triggers.values import Kind
from orchestration.stages.values import Element, Model, Name, Scalar

_BUCKET: Final = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
_GROUP: Final = r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$"
_PIPELINE: Final = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
_QUEUE: Final = r"^https?://\S+/\d{12}/[A-Za-z0-9_-]{1,80}$"
_KINDS: Final[tuple[Kind, ...]] = ("s3", "model_package", "pipeline", "event")


def _literal(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(
            f"expected text, got {value!r}: what hears of events is made when the pipeline is "
            "deployed, before any run has parameters"
        )
    return value


Literally: TypeAlias = Annotated[str, BeforeValidator(_literal)]
"""Text that is known when a pipeline is deployed."""


class S3Objects(Model):
    """New objects in a bucket, which must send its events to EventBridge."""

    bucket: Annotated[Literally, StringConstraints(pattern=_BUCKET)]
    """Name of the bucket, whose notifications EventBridge gets."""
    prefix: Literally = ""
    """The beginning of their keys."""
    suffix: Literally = ""
    """The end of their keys: ``.csv``."""


class ModelPackages(Model):
    """Versions of a model in SageMaker's registry that get a status."""

    group: Annotated[Literally, StringConstraints(pattern=_GROUP)]
    """Name of the model package group."""
    status: Literal["Approved", "Rejected", "PendingManualApproval"] = "Approved"
    """Approval status that starts a run, once a package of the group has it."""


class EventValue(Model):
    """A value that an event tells."""

    event: str
    """Of ``s3``: ``object_uri``, ``bucket``, ``key``, ``size``, ``etag``; of ``model_package``:
    ``model_package``, ``group``, ``version``, ``status``; of ``pipeline``: ``run``; of each of
    these ``id`` and ``time``; of any other ``event`` the path of a field: ``detail.order.uri``."""


class Trigger(Model):
    """The event after which the pipeline runs by itself: one of four kinds."""

    s3: S3Objects | None = None
    """New objects in S3."""
    model_package: ModelPackages | None = None
    """Versions of a model in SageMaker's registry that are approved."""
    pipeline: Annotated[Literally, StringConstraints(pattern=_PIPELINE)] | None = None
    """The name of another pipeline, whose runs succeed."""
    event: dict[str, Any] | None = None
    """A pattern of EventBridge: ``{source: [my.orders], detail: {state: [paid]}}``."""
    parameters: dict[Name, EventValue | Scalar | list[Element]] = {}
    """Values of parameters for these runs: their own, or ``{event: …}`` for one that the event
    tells."""
    queue: Annotated[Literally, StringConstraints(pattern=_QUEUE)] | None = None
    """The URL of the queue of SQS in which Airflow finds the events of EventBridge; Step Functions
    needs none, nor does ``pipeline``."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            got = " and ".join(kinds) or "none"
            raise ValueError(f"expected one of {', '.join(_KINDS)}, got {got}")
        return self

    @property
    def kind(self) -> Kind:
        """The kind of event."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    def event_values(self) -> dict[str, str]:
        """Return the names of the values that parameters get from the event."""
        return {
            name: value.event
            for name, value in self.parameters.items()
            if isinstance(value, EventValue)
        }

    def spec(self) -> TriggerSpec:
        """Return the trigger as backends take it."""
        texts = {
            name: values.template(self.kind, asked) for name, asked in self.event_values().items()
        }
        written = {name: text for name, text in texts.items() if text is not None}
        return TriggerSpec(
            pattern=self._pattern(written),
            values=written,
            parameters={
                name: value
                for name, value in self.parameters.items()
                if not isinstance(value, EventValue)
            },
            pipeline=self.pipeline,
            bucket=None if self.s3 is None else self.s3.bucket,
            prefix="" if self.s3 is None else self.s3.prefix,
            suffix="" if self.s3 is None else self.s3.suffix,
            queue=self.queue,
        )

    def _pattern(self, written: Mapping[str, str]) -> dict[str, Json]:
        if self.s3 is not None:
            return patterns.of_objects(self.s3.bucket, self.s3.prefix, self.s3.suffix)
        if self.model_package is not None:
            package = self.model_package
            return patterns.of_model_packages(package.group, package.status)
        if self.event is None:
            return {}
        fields = [values.field(text) for text in written.values()]
        return patterns.having(self.event, [path for path in fields if path is not None])
