"""Plans: what was chosen, what else was worth it, and what was rejected and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal

from orchestration.catalog import Price
from orchestration.planning.cost.estimates import memory_room
from orchestration.planning.cost.prediction import Prediction
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.learning_rates import Advice
from orchestration.planning.search.objective import Objective
from orchestration.planning.search.task import Task
from orchestration.strategies import Strategy

Reason = Literal[
    "not known", "precision", "batch", "support", "memory", "price", "run time", "deadline",
    "budget", "not the best",
]  # fmt: skip
"""Why something was rejected."""


@dataclass(frozen=True, slots=True)
class Range:
    """A prediction with the ends between which four in five measurements lie."""

    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Range:
        """All three, multiplied."""
        return Range(self.low * factor, self.expected * factor, self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to train, and what it takes."""

    instance_type: str
    instance_count: int
    layout: Layout
    strategy: Strategy
    configuration: Configuration
    prediction: Prediction
    steps: int
    time_s: Range
    """The whole training, without waiting for instances and loading of data."""
    cost_usd: Range | None
    """``None``: no price is known."""
    price: Price | None
    mfu: float
    """Share of the devices' peak that the model's own operations use."""
    advice: Advice | None
    warnings: tuple[str, ...] = ()

    @property
    def headroom_gib(self) -> float:
        """Memory of the fullest device that is not needed."""
        return memory_room(self.configuration) - self.prediction.memory.need

    @property
    def instance_hours(self) -> float:
        """Instances times hours, as they are paid."""
        return self.instance_count * self.time_s.expected / 3600

    def data(self) -> dict[str, object]:
        """The plan as JSON."""
        p = self.prediction
        return {
            "instance_type": self.instance_type,
            "instance_count": self.instance_count,
            "layout": str(self.layout),
            "strategy": self.strategy.model_dump(exclude_none=True),
            **self._settings(),
            "steps": self.steps,
            "memory_gib": {**_parts(p.memory), **self._memory()},
            "step_s": {
                **_parts(p.time), "total": p.step_time_s, "low": p.low_s, "high": p.high_s
            },
            "tokens_per_s": p.tokens_per_s,
            "mfu": self.mfu,
            "time_s": _parts(self.time_s),
            "cost_usd": None if self.cost_usd is None else _parts(self.cost_usd),
            "price": None if self.price is None else _parts(self.price),
            "learning_rate": None if self.advice is None else _parts(self.advice),
            "warnings": list(self.warnings),
        }  # fmt: skip

    def _settings(self) -> dict[str, object]:
        """What the training script has to do."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Instances, or a layout on them, that were not chosen."""

    instance_type: str
    instance_count: int | None
    layout: str
    """Empty: whatever the layout."""
    reason: Reason
    detail: str
    figures: Mapping[str, float]
    """What `detail` says, as numbers with their unit in the name."""

    def data(self) -> dict[str, object]:
        """The rejection as JSON."""
        return {**_parts(self), "figures": dict(self.figures)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The answer of a search."""

    task: Task
    objective: Objective
    chosen: Plan | None
    front: tuple[Plan, ...]
    """Every plan that no other beats in both time and cost, the fastest first."""
    rejected: tuple[Rejected, ...]
    alternatives: tuple[Plan, ...]
    """The best plan of every other layout on the chosen instances, the fastest first."""
    scaling: tuple[Plan, ...]
    """The best plan for each number of instances of the chosen type."""
    missing: tuple[str, ...]
    """Without a plan: what is missing by how much, and what would help."""
    considered: int
    """Configurations that were predicted."""

    @property
    def simpler(self) -> Plan | None:
        """A simpler layout on the chosen instances that is about as fast: within 2 %."""
        chosen = self.chosen
        if chosen is None:
            return None
        most = chosen.time_s.expected * (1 + _ABOUT)
        near = (
            plan
            for plan in self.alternatives
            if plan.layout.rank < chosen.layout.rank and plan.time_s.expected <= most
        )
        return min(near, key=lambda plan: plan.layout.rank, default=None)

    def data(self) -> dict[str, object]:
        """The answer as JSON."""
        return {
            "objective": str(self.objective),
            "chosen": None if self.chosen is None else self.chosen.data(),
            "front": [one.data() for one in self.front],
            "alternatives": [one.data() for one in self.alternatives],
            "simpler": None if self.simpler is None else self.simpler.data(),
            "scaling": [one.data() for one in self.scaling],
            "rejected": [one.data() for one in self.rejected],
            "missing": list(self.missing),
            "considered": self.considered,
        }


_ABOUT: Final = 0.02
"""Less than any prediction can tell apart."""


def _parts(value: object) -> dict[str, object]:
    """The fields of a flat dataclass."""
    return {one.name: getattr(value, one.name) for one in fields(value)}  # type: ignore[arg-type]  # only called with dataclasses
