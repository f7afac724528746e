"""Plans: the answer of a search, with alternatives, and rejections with their reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal

from orchestration import notebook
from orchestration.catalog import Price
from orchestration.planning.cost.estimates import memory_room
from orchestration.planning.cost.prediction import Prediction
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.search.amounts import duration, money
from orchestration.planning.search.answers.besides import Besides
from orchestration.planning.search.answers.learning_rates import Advice
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.objective import Objective
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Task
from orchestration.strategies import Strategy

Reason = Literal[
    "unknown", "precision", "batch", "support", "memory", "price", "run time", "deadline",
    "budget", "not the best",
]  # fmt: skip
"""Reasons for a rejection."""


HEADINGS: Final = ("instances", "layout", "strategy", "batch", "memory", "MFU", "time", "cost")


@dataclass(frozen=True, slots=True)
class Range:
    """A prediction, with the interval that holds four in five measurements."""

    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Range:
        """Multiply all three values."""
        return Range(self.low * factor, self.expected * factor, self.high * factor)

    def plus(self, amount: float) -> Range:
        """Add an amount to all three values."""
        return Range(self.low + amount, self.expected + amount, self.high + amount)

    def widened(self, factor: float) -> Range:
        """Move both ends away by a factor."""
        return Range(self.low / factor, self.expected, self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to train, with its time, memory and cost."""

    instance_type: str
    instance_count: int
    layout: Layout
    strategy: Strategy
    configuration: Configuration
    prediction: Prediction
    steps: int
    time_s: Range
    """Time of the whole training, with its start and checkpoints, without waiting for instances."""
    besides: Besides = field(default_factory=Besides)
    """The part of it that is not spent on steps."""
    cost_usd: Range | None
    """``None``: the price is unknown."""
    price: Price | None
    mfu: float | None
    """Model FLOP/s utilisation: the model's own operations over the devices' peak; ``None``: they
    are unknown."""
    advice: Advice | None
    warnings: tuple[str, ...] = ()

    @property
    def headroom_gib(self) -> float:
        """Unused memory of the fullest device."""
        return memory_room(self.configuration) - self.prediction.memory.need

    @property
    def instance_hours(self) -> float:
        """Instances times hours, as AWS bills them."""
        return self.instance_count * self.time_s.expected / 3600

    def _repr_html_(self) -> str:
        return notebook.table(HEADINGS, [row(self)])

    def data(self) -> dict[str, object]:
        """Return the plan as JSON."""
        p = self.prediction
        return {
            "instance_type": self.instance_type,
            "instance_count": self.instance_count,
            "layout": str(self.layout),
            "strategy": self.strategy.model_dump(exclude_none=True),
            **self._settings(),
            "steps": self.steps,
            "memory_gib": {**_values(p.memory), **self._memory()},
            "step_s": {
                **_values(p.time), "total": p.step_time_s, "low": p.low_s, "high": p.high_s
            },
            "tokens_per_s": p.tokens_per_s,
            "mfu": self.mfu,
            "time_s": _values(self.time_s),
            "besides": _values(self.besides),
            "cost_usd": None if self.cost_usd is None else _values(self.cost_usd),
            "price": None if self.price is None else _values(self.price),
            "learning_rate": None if self.advice is None else _values(self.advice),
            "warnings": list(self.warnings),
        }  # fmt: skip

    def _settings(self) -> dict[str, object]:
        """Settings that the training script needs."""
        c = self.configuration
        degrees = ("zero", "tensor", "pipeline", "context", "expert")
        return {
            "degrees": {
                "data": c.data,
                "shard": c.shards if c.zero else 1,
                **{name: getattr(c, name) for name in degrees},
            },
            "global_batch": c.global_batch,
            "micro_batch": c.micro_batch,
            "accumulation": c.micro_batches,
            "recompute": c.recompute,
            "offload": c.offload,
            "precision": c.precision,
        }

    def _memory(self) -> dict[str, float]:
        p = self.prediction
        return {
            "need": p.memory.need,
            "shown": p.memory_gib,
            "shown_low": p.memory_low_gib,
            "shown_high": p.memory_high_gib,
            "device": self.configuration.machine.device_memory_gib,
            "headroom": self.headroom_gib,
        }


def row(plan: Plan) -> tuple[str, ...]:
    """Return a plan as one line under `HEADINGS`."""
    c = plan.configuration
    return (
        f"{plan.instance_count} x {plan.instance_type}",
        str(plan.layout),
        plan.strategy.kind,
        f"{c.global_batch} = {c.micro_batch} x {c.micro_batches} x {c.data}",
        f"{plan.prediction.memory.need:,.1f} of {c.machine.device_memory_gib:,.0f} GiB",
        "" if plan.mfu is None else f"{plan.mfu:.0%}",
        duration(plan.time_s.expected),
        money(plan.cost_usd.expected) if plan.cost_usd is not None else "?",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Instances, or a layout on them, that were not chosen."""

    instance_type: str
    instance_count: int | None
    layout: str
    """Empty: any layout."""
    reason: Reason
    detail: str
    figures: Mapping[str, float]
    """Numbers in `detail`, by names that end in their unit."""

    def data(self) -> dict[str, object]:
        """Return the rejection as JSON."""
        return {**_values(self), "figures": dict(self.figures)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The answer of a search."""

    task: Task
    objective: Objective
    chosen: Plan | None
    front: tuple[Plan, ...]
    """Plans that no other beats in both time and cost, the fastest first."""
    rejected: tuple[Rejected, ...]
    alternatives: tuple[Plan, ...]
    """The best plan of every other layout on the chosen instances, the fastest first."""
    scaling: tuple[Plan, ...]
    """The best plan for each number of instances of the chosen type."""
    passed_over: Plan | None
    """A plan that is expected to be better than the chosen, about which less is known."""
    listed: Plan | None
    """The best plan at a listed price, if the price of the chosen is an estimate."""
    missing: tuple[str, ...]
    """If there is no plan: what is missing, by how much, and what would help."""
    considered: int
    """Number of configurations that were predicted."""
    space: Space
    """The space that was searched."""
    region: str
    """The region of all prices."""
    prices: Mapping[str, Price]
    """Prices of the instance types that were searched, as far as they are known."""
    contenders: tuple[Plan, ...] = ()
    """The best plan of each cluster that may keep every limit, whichever was chosen."""

    def _repr_html_(self) -> str:
        chosen = [] if self.chosen is None else [("chosen", self.chosen)]
        others = [("as good", plan) for plan in self.front if plan is not self.chosen]
        lines = [(role, *row(plan)) for role, plan in [*chosen, *others]]
        title = f"{self.task.model.name}: {self.objective}"
        told = notebook.table(("", *HEADINGS), lines)
        return notebook.block(title, told, *map(notebook.line, self.missing))

    def data(self) -> dict[str, object]:
        """Return the answer as JSON."""
        return {
            "objective": str(self.objective),
            "chosen": None if self.chosen is None else self.chosen.data(),
            "front": [plan.data() for plan in self.front],
            "alternatives": [plan.data() for plan in self.alternatives],
            "passed_over": None if self.passed_over is None else self.passed_over.data(),
            "listed": None if self.listed is None else self.listed.data(),
            "scaling": [plan.data() for plan in self.scaling],
            "rejected": [rejection.data() for rejection in self.rejected],
            "missing": list(self.missing),
            "considered": self.considered,
            "region": self.region,
            "prices": {name: _values(price) for name, price in self.prices.items()},
        }


_ABOUT: Final = 0.02
"""Difference in time that is too small for any prediction."""


def simplest(best: Plan, others: Iterable[Plan]) -> Plan:
    """Return the simplest layout on the same instances that takes about as long as the best.

    It may not take longer, either.
    """
    longest, most = (seconds * (1 + _ABOUT) for seconds in (best.time_s.expected, best.time_s.high))
    near = [p for p in others if p.time_s.expected <= longest and p.time_s.high <= most]
    return min([best, *near], key=lambda plan: (plan.layout.rank, plan.time_s.expected))


def _values(value: object) -> dict[str, object]:
    """Return the fields of a flat dataclass."""
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]  # only called with dataclasses
