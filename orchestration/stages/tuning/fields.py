"""The fields that a tuning job has beside those of its training jobs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.stages.training.container import as_text
from orchestration.stages.training.fields import TrainingFields
from orchestration.stages.values import Count, Model, Scalar, Text

MOST_VALUES: Final = 30
"""Values of a categorical hyperparameter."""
_WAYS: Final = ("continuous", "integer", "categorical")


class TuningObjective(Model):
    """The metric by which training jobs are compared."""

    metric: str = Field(min_length=1, max_length=255)
    """Its name: one of the ``metrics``, of the ``regex`` here, or of a built-in algorithm."""
    direction: Literal["max", "min"]
    """``max``: the largest value is the best."""
    regex: str | None = Field(default=None, min_length=1, max_length=500)
    """Regular expression over the log, whose first group is the value; the last match counts."""


class TuningRange(Model):
    """The values that a hyperparameter may have: give one of the first three fields."""

    continuous: tuple[float, float] | None = None
    """Smallest and largest number: ``[0.0001, 0.1]``."""
    integer: tuple[int, int] | None = None
    """Smallest and largest whole number: ``[16, 128]``."""
    categorical: tuple[Scalar, ...] | None = None
    """The values themselves: ``[adam, sgd]``."""
    scaling: Literal["auto", "linear", "logarithmic", "reverse_logarithmic"] | None = None
    """The scale on which values are chosen; by default SageMaker chooses one."""

    def request(self, name: str, *, encoded: bool) -> tuple[str, dict[str, Any]]:
        """Return the list that the range stands in, and its entry there.

        ``encoded``: the values are JSON, as the training toolkit reads them. The SageMaker SDK
        makes text of numbers first, which reaches a script alike.
        """
        if self.categorical is not None:
            values = [json.dumps(v) if encoded else as_text(v) for v in self.categorical]
            return "CategoricalParameterRanges", {"Name": name, "Values": values}
        low, high = self.bounds
        entry: dict[str, Any] = {"Name": name, "MinValue": str(low), "MaxValue": str(high)}
        if self.scaling is not None:
            entry["ScalingType"] = "".join(part.title() for part in self.scaling.split("_"))
        kind = "Integer" if self.integer is not None else "Continuous"
        return f"{kind}ParameterRanges", entry

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number."""
        return self.integer or self.continuous or (0.0, 0.0)

    def problems(self) -> Iterator[Problem]:
        """Yield the range's own errors, with paths inside it."""
        ways = [way for way in _WAYS if getattr(self, way) is not None]
        if len(ways) != 1:
            given = f"got {' and '.join(ways)}" if ways else "got none"
            yield Problem("", f"expected one of {', '.join(_WAYS)}, {given}: {{integer: [1, 9]}}")
        elif self.categorical is not None:
            yield from self._categories(self.categorical)
        elif self.bounds[0] >= self.bounds[1]:
            low, high = self.bounds
            yield Problem(ways[0], f"expected the smaller number first, got [{low}, {high}]")
        else:
            yield from self._scale()

    def _categories(self, values: tuple[Scalar, ...]) -> Iterator[Problem]:
        if not 1 <= len(values) <= MOST_VALUES:
            yield Problem("categorical", f"expected 1 to {MOST_VALUES} values, got {len(values)}")
        texts = [json.dumps(value) for value in values]
        for text in sorted({text for text in texts if texts.count(text) > 1}):
            yield Problem("categorical", f"names {text} twice")
        if self.scaling is not None:
            yield Problem("scaling", "categorical values have no scale; remove it")

    def _scale(self) -> Iterator[Problem]:
        low, high = self.bounds
        if self.scaling == "logarithmic" and low <= 0:
            yield Problem(
                "scaling",
                f"logarithmic takes numbers above 0 only, got [{low}, {high}]; use linear",
            )
        if self.scaling == "reverse_logarithmic" and self.integer is not None:
            yield Problem("scaling", "reverse_logarithmic is for continuous ranges; use linear")
        elif self.scaling == "reverse_logarithmic" and not (low >= 0 and high < 1):
            yield Problem(
                "scaling",
                "reverse_logarithmic takes numbers from 0 to below 1, "
                f"got [{low}, {high}]; use linear",
            )


class TuningLimits(Model):
    """The most that a tuning job may start and take."""

    jobs: Count | None = None
    """Training jobs in all; grid search runs one for each combination by itself."""
    parallel: Count = 1
    """Training jobs at a time."""
    runtime_s: int | None = Field(default=None, ge=120, le=15_768_000)
    """Seconds of the whole tuning job; ``max_runtime_s`` is the time of each training job."""


class TuningEnd(Model):
    """Results after which no further training job is started."""

    objective: float | None = None
    """A value of the objective that is good enough."""
    not_improving: int | None = Field(default=None, ge=3)
    """Training jobs that improved the objective by less than 1 %."""
    converged: bool = False
    """End when SageMaker finds that further jobs are unlikely to improve it."""


class Hyperband(Model):
    """The epochs (or other resources that the objective is reported for) of ``hyperband``."""

    min_resource: int | None = Field(default=None, ge=1)
    """No training job is stopped before it."""
    max_resource: int | None = Field(default=None, ge=1, le=20_000)
    """By default the hyperparameter ``epochs``, ``numepochs``, ``n-epochs``, ``n_epochs`` or
    ``num_epochs``."""


class WarmStart(Model):
    """Earlier tuning jobs whose results the search begins with."""

    parents: tuple[Text, ...] = Field(min_length=1, max_length=5)
    """Their names; they have ended."""
    type: Literal["identical", "transfer"] = "identical"
    """``identical``: same data and algorithm. ``transfer``: these may differ."""


class TuningFields(TrainingFields):
    """The fields of a tuning job: those of a training job, and the search around it."""

    # A type checker takes a subclass for one of the same kind; for a reader of files it is another.
    kind: Literal["tuning_job"] = "tuning_job"  # type: ignore[assignment]
    objective: TuningObjective
    """The metric by which training jobs are compared."""
    ranges: dict[str, TuningRange] = Field(min_length=1)
    """The hyperparameters to choose, beside the fixed ``hyperparameters``."""
    search: Literal["bayesian", "random", "grid", "hyperband"] = "bayesian"
    """The way to choose values; grid search tries every combination of categorical values."""
    limits: TuningLimits = TuningLimits()
    """The most that the search may start and take."""
    early_stopping: bool = False
    """Stop training jobs that are unlikely to become better than those before them."""
    end: TuningEnd | None = None
    """Conditions that end the search before its limits."""
    hyperband: Hyperband | None = None
    """Resources of ``search: hyperband``."""
    warm_start: WarmStart | None = None
    """Earlier tuning jobs whose results the search begins with."""
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """The same seed makes the same choices more likely."""

    @property
    def combinations(self) -> int:
        """The combinations of all categorical values."""
        return math.prod(len(r.categorical or ()) for r in self.ranges.values())

    @property
    @override
    def defined_metrics(self) -> Mapping[str, str]:
        return self.training().metrics

    def training(self, *, tuned: Mapping[str, Any] | None = None) -> TrainingFields:
        """Return the training job that is tuned, with values for the tuned hyperparameters."""
        metrics = dict(self.metrics)
        if self.objective.regex is not None:
            metrics.setdefault(self.objective.metric, self.objective.regex)
        hyperparameters = {**self.hyperparameters, **(tuned or {})}
        changed = {"metrics": metrics, "hyperparameters": hyperparameters, "extra_request": {}}
        return self.model_copy(update=changed)
