"""Requests for plans, as users write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from orchestration.catalog import instances
from orchestration.errors import PipelineError, Problem, near
from orchestration.planning.model.configuration import Kernels, Optimizer
from orchestration.planning.model.recipes import Engine
from orchestration.planning.model.shapes import ModelError, ModelShape, Targets
from orchestration.planning.model.typical_shapes import of_size, transformer
from orchestration.planning.search.objective import Aim, Objective
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Batch, Framework, KnownRate, Lora, Task, evened
from orchestration.strategies import Strategy

Positive = Annotated[int, Field(ge=1)]
Above = Annotated[float, Field(gt=0)]


class PlanRequestError(PipelineError):
    """A request for a plan is invalid."""

    headline = "the request for a plan is not valid"


class _Request(BaseModel):
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", protected_namespaces=()
    )


class ModelRequest(_Request):
    """The model: its configuration, a few numbers, or only its number of parameters."""

    name: str | None = None
    config: Mapping[str, Any] | str | None = None
    """Content of Hugging Face's ``config.json``; in YAML files also the path to it."""
    parameters: Above | None = None
    """Number of parameters; the shape is guessed, and predictions get wider margins."""
    layers: Positive | None = None
    hidden: Positive | None = None
    heads: Positive | None = None
    kv_heads: Positive | None = None
    ffn: Positive | None = None
    vocabulary: Positive | None = None
    gated: bool = True
    tied_embeddings: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> ModelRequest:
        numbers = (self.layers, self.hidden, self.heads)
        ways = [self.config is not None, self.parameters is not None, any(numbers)]
        if sum(ways) != 1:
            raise ValueError(
                "give one of config (Hugging Face's config.json), parameters, or layers with "
                "hidden, heads and vocabulary"
            )
        if any(numbers) and not (all(numbers) and self.vocabulary):
            raise ValueError("layers, hidden, heads and vocabulary are required together")
        return self

    def shape(self) -> ModelShape:
        """Return the model's shape."""
        # Imported on use: every pipeline loads this module, and few ask for a plan.
        from orchestration.planning.model.hugging_face import from_config

        if isinstance(self.config, str):
            raise ModelError(
                f"model.config: expected the content of a file, got a path: {self.config}"
            )
        if self.config is not None:
            return from_config(self.config, self.name)
        if self.parameters is not None:
            name = self.name or f"a model of {self.parameters / 1e9:,.3g} billion parameters"
            return of_size(self.parameters, vocabulary=self.vocabulary or 32_000, name=name)
        return transformer(
            layers=self.layers or 0,
            hidden=self.hidden or 0,
            heads=self.heads or 0,
            kv_heads=self.kv_heads,
            ffn=self.ffn,
            vocabulary=self.vocabulary or 0,
            gated=self.gated,
            tied_embeddings=self.tied_embeddings,
            name=self.name or "model",
        )


class _Amount(_Request):
    samples: Positive | None = None
    tokens: Above | None = None

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.samples is None) == (self.tokens is None):
            raise ValueError("give samples or tokens")
        return self


class BatchRequest(_Amount):
    """The batch of one optimizer step, in samples or tokens: a number or a range.

    A number of tokens is rounded by at most 5 %, so that the batch can be halved often.
    """

    up_to_samples: Positive | None = None
    """Largest batch that the planner may choose."""
    up_to_tokens: Above | None = None
    critical_samples: Above | None = None
    """Batch beyond which more samples per step hardly save steps: the gradient's noise scale."""

    @model_validator(mode="after")
    def _range(self) -> Self:
        pairs = ((self.samples, self.up_to_samples), (self.tokens, self.up_to_tokens))
        if any(least and most and most < least for least, most in pairs):
            raise ValueError("the largest batch is smaller than the batch; raise it")
        return self

    def batch(self, sequence: int) -> Batch:
        """Return the batch in samples."""
        least = self.samples or evened((self.tokens or 0) / sequence)
        most = self.up_to_samples or evened((self.up_to_tokens or 0) / sequence)
        return Batch(least=least, most=max(most, least), critical=self.critical_samples)


class DataRequest(_Amount):
    """The training data, in samples or tokens, times epochs."""

    epochs: Above = 1

    def total(self, sequence: int) -> int:
        """Return the number of samples in the whole training."""
        return max(1, round((self.samples or (self.tokens or 0) / sequence) * self.epochs))


class LoraRequest(_Request):
    """LoRA adapters, trained instead of the model's own weights."""

    rank: Positive
    targets: Targets = "attention"


class RateRequest(_Request):
    """A learning rate that works for a batch."""

    value: Above
    batch: Positive


class FrameworkRequest(_Request):
    """Framework of the training script."""

    name: Literal["pytorch", "huggingface", "tensorflow", "mxnet"] = "pytorch"
    version: str | None = None
    image: str | None = None


class InstancesRequest(_Request):
    """Instances that may be rented."""

    types: tuple[str, ...] = ("ml.*",)
    """Instance types; ``*`` stands for any text."""
    counts: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 2, 4, 8, 16, 32)
    quotas: Mapping[str, Annotated[int, Field(ge=0)]] = {}
    """Largest number of instances by type; ``*`` stands for any text."""
    region: str | None = None
    spot: bool = False
    spot_saving: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Fraction of the on-demand price that you expect spot to save."""

    @field_validator("region")
    @classmethod
    def _known_region(cls, value: str | None) -> str | None:
        from orchestration.strategies.images.table import suffixes  # long, and rarely needed

        if value is not None and value not in suffixes():
            raise ValueError(f"unknown region {value!r}{near(value, suffixes())}")
        return value

    @model_validator(mode="after")
    def _quotas_of_known_types(self) -> InstancesRequest:
        for pattern in self.quotas:
            if not any(fnmatchcase(name, pattern) for name in instances()):
                hint = near(pattern, instances())
                raise ValueError(f"quotas: no instance type matches {pattern!r}{hint}")
        return self


class PlanRequest(_Request):
    """A training to plan."""

    model: ModelRequest
    sequence: Positive
    """Tokens of one sample."""
    precision: Literal["fp32", "fp16", "bf16", "fp8"] = "bf16"
    optimizer: Optimizer = "adamw"
    lora: LoraRequest | None = None
    batch: BatchRequest
    data: DataRequest
    learning_rate: RateRequest | None = None
    framework: FrameworkRequest = FrameworkRequest()
    kernels: Kernels = "eager"
    engine: Engine | None = None
    """Engine of the training script; ``None``: PyTorch's own, DeepSpeed or NeuronX, by layout."""
    instances: InstancesRequest = InstancesRequest()
    strategies: tuple[str, ...] | None = None
    """Allowed kinds of strategies; ``None``: all."""
    unverified: bool = False
    """Also use strategies if no source says whether they run on an instance."""
    objective: Aim = "cheapest"
    deadline_h: Above | None = None
    budget_usd: Above | None = None

    @field_validator("strategies")
    @classmethod
    def _known_strategies(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        kinds = [model.model_fields["kind"].default for model in _models(Strategy)]
        for kind in value or ():
            if kind not in kinds:
                raise ValueError(f"unknown strategy {kind!r}{near(kind, kinds)}")
        return value

    def task(self) -> Task:
        """Return the training task."""
        lora, rate = self.lora, self.learning_rate
        return Task(
            model=self.model.shape(),
            sequence=self.sequence,
            samples=self.data.total(self.sequence),
            batch=self.batch.batch(self.sequence),
            precision=self.precision,
            optimizer=self.optimizer,
            lora=None if lora is None else Lora(rank=lora.rank, targets=lora.targets),
            learning_rate=None if rate is None else KnownRate(value=rate.value, batch=rate.batch),
            framework=Framework(**self.framework.model_dump()),
            kernels=self.kernels,
            engine=self.engine,
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


def problems_of(error: ValidationError, prefix: str = "") -> list[Problem]:
    """Return the problems of a request, with paths that begin with ``prefix``."""
    problems = []
    for detail in error.errors(include_url=False):
        location = detail["loc"]
        path = ".".join(str(part) for part in location)
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            message = f"there is no such field{near(str(location[-1]), fields_at(location))}"
        elif detail["type"] == "missing":
            message = "is missing"
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
