"""Requests for plans, as users write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from orchestration.errors import PipelineError, Problem, near
from orchestration.phrases import phrase
from orchestration.planning.model.configuration import Kernels, Optimizer
from orchestration.planning.model.recipes import Engine
from orchestration.planning.model.shapes import Targets
from orchestration.planning.search.asked.amounts import BatchRequest, DataRequest
from orchestration.planning.search.asked.fields import Above, Asked, Positive
from orchestration.planning.search.asked.machines import FrameworkRequest, InstancesRequest
from orchestration.planning.search.asked.model import ModelRequest
from orchestration.planning.search.objective import Aim, Objective
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Checkpoints, Framework, KnownRate, Lora, Task
from orchestration.strategies import Strategy


class PlanRequestError(PipelineError):
    """A request for a plan is invalid."""

    headline = "the request for a plan is not valid"


class LoraRequest(Asked):
    """LoRA adapters, trained instead of the model's own weights."""

    rank: Positive
    """Rank of the adapters."""
    targets: Targets = "attention"
    """Layers that have adapters."""
    bits: Literal[4, 8] | None = None
    """Bits of a frozen weight, of bitsandbytes: 4 (QLoRA's NF4) or 8; ``None``: those of
    ``precision``."""


class CheckpointsRequest(Asked):
    """Checkpoints that training waits for: what is trained, with its optimizer states."""

    every_steps: Positive
    """Steps from one to the next."""
    gb_per_s: Above
    """GB/s at which the whole cluster writes them: of FSx for Lustre 0.125 to 1 for each TiB
    (https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html); what your runs took, if
    they write to a disk that SageMaker copies to S3."""


class RateRequest(Asked):
    """A learning rate that works for a batch."""

    value: Above
    """The learning rate."""
    batch: Positive
    """The batch that it works for, in samples."""


class PlanRequest(Asked):
    """A training to plan."""

    model: ModelRequest
    """The model to train."""
    sequence: Positive = Field(default=None, validate_default=True)
    """Tokens of one sample; not needed of a ``custom`` model and of a vision transformer."""
    precision: Literal["fp32", "fp16", "bf16", "fp8"] = "bf16"
    """Number format of the computation."""
    optimizer: Optimizer = "adamw"
    """The optimizer, whose state takes memory."""
    lora: LoraRequest | None = None
    """Train adapters instead of all weights."""
    batch: BatchRequest
    """The batch of one optimizer step."""
    data: DataRequest
    """The amount of training data."""
    learning_rate: RateRequest | None = None
    """A known learning rate, scaled to the batch that is chosen."""
    checkpoints: CheckpointsRequest | None = None
    """Checkpoints, whose time is added to that of the steps; ``None``: no time for them."""
    startup_min: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Billed minutes until the first step (container, data, model), as your earlier jobs took
    them; no source tells them in general."""
    framework: FrameworkRequest = FrameworkRequest()
    """Framework of the training script."""
    kernels: Kernels = "eager"
    """Kernels of elementwise work: one per operator (``eager``), those of ``torch.compile``, or
    Transformer Engine's (``fused``)."""
    engine: Engine | None = None
    """Engine of the training script; ``None``: PyTorch's own, DeepSpeed or NeuronX, by layout."""
    instances: InstancesRequest = InstancesRequest()
    """Instances that may be rented."""
    strategies: tuple[str, ...] | None = None
    """Allowed kinds of strategies; ``None``: all."""
    unverified: bool = False
    """Also use strategies if no source says whether they run on an instance."""
    objective: Aim = "cheapest"
    """The aim of the plan."""
    deadline_h: Above | None = None
    """Most hours that the training may take."""
    budget_usd: Above | None = None
    """Most US dollars it may cost."""

    @field_validator("sequence", mode="before")
    @classmethod
    def _given(cls, value: object, info: ValidationInfo) -> object:
        model = info.data.get("model")
        if value is not None:
            return value
        if model is None:  # which is reported itself
            return 1
        if (tokens := model.tokens()) is None:
            raise ValueError("is missing")
        return tokens

    @field_validator("strategies")
    @classmethod
    def _known_strategies(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        kinds = [model.model_fields["kind"].default for model in _models(Strategy)]
        if value is not None and not value:
            raise ValueError("give one or more, or leave it out, which allows all")
        for kind in value or ():
            if kind not in kinds:
                raise ValueError(f"unknown strategy {kind!r}{near(kind, kinds)}")
        return value

    @model_validator(mode="after")
    def _whole_batches(self) -> Self:
        if self.model.custom and self.lora is not None:
            raise ValueError("lora: a custom model has no layers to adapt; leave it out")
        if self.lora is not None and self.lora.bits is not None:
            _refuse_few_bits(self.framework.name, self.precision)
        samples, batch = self.data.total(self.sequence), self.batch.batch(self.sequence).least
        if samples < batch:
            raise ValueError(
                f"data: less than one batch ({samples:,} of {batch:,} samples of "
                f"{self.sequence:,} tokens); give more data or epochs, or a smaller batch"
            )
        return self

    def task(self) -> Task:
        """Return the training task."""
        lora, rate, checkpoints = self.lora, self.learning_rate, self.checkpoints
        return Task(
            model=self.model.shape(),
            sequence=self.sequence,
            samples=self.data.total(self.sequence),
            batch=self.batch.batch(self.sequence),
            precision=self.precision,
            optimizer=self.optimizer,
            lora=None if lora is None else Lora(**lora.model_dump()),
            learning_rate=None if rate is None else KnownRate(value=rate.value, batch=rate.batch),
            framework=Framework(**self.framework.model_dump()),
            kernels=self.kernels,
            engine=self.engine,
            checkpoints=None if checkpoints is None else Checkpoints(**checkpoints.model_dump()),
            startup_s=60 * self.startup_min,
        )

    def space(self) -> Space:
        """Return the space to search."""
        where = self.instances
        return Space(
            types=where.types,
            counts=where.counts,
            quotas=where.quotas,
            region=where.region,
            spot=where.spot,
            spot_saving=where.spot_saving,
            strategies=None if self.strategies is None else frozenset(self.strategies),
            unverified=self.unverified,
        )

    def goal(self) -> Objective:
        """Return the objective with its limits."""
        return Objective(
            aim=self.objective,
            deadline_s=None if self.deadline_h is None else self.deadline_h * 3600,
            budget_usd=self.budget_usd,
        )


def _refuse_few_bits(framework: str, precision: str) -> None:
    """Refuse weights of few bits where bitsandbytes has none."""
    if framework not in ("pytorch", "huggingface"):
        raise ValueError(
            f"lora.bits: bitsandbytes has no weights of few bits for {framework}; leave it out, or "
            "take pytorch or huggingface"
        )
    if precision == "fp8":
        raise ValueError("lora.bits: weights of few bits are computed with in bf16, fp16 or fp32")


def problems_of(error: ValidationError, prefix: str = "") -> list[Problem]:
    """Return the problems of a request, with paths that begin with ``prefix``."""
    problems = []
    for detail in error.errors(include_url=False):
        location = detail["loc"]
        path = ".".join(str(part) for part in location)
        if detail["type"] == "extra_forbidden":
            message = f"there is no such field{near(str(location[-1]), fields_at(location))}"
        elif detail["type"] == "missing":
            message = "is missing"
        elif detail["type"] == "string_type" and isinstance(detail["input"], int | float):
            message = f'expected text, got a number; write it in quotes: "{detail["input"]}"'
        else:
            is_part = detail["type"].startswith("model")
            message = phrase(detail, keys=fields_at((*location, "")) if is_part else ())
        problems.append(Problem(f"{prefix}{path}".rstrip("."), message))
    return problems


def fields_at(location: Sequence[int | str]) -> list[str]:
    """Return the names of the fields beside an unknown one."""
    model: type[BaseModel] = PlanRequest
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        inner = next(_models(field.annotation), None) if field else None
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
