"""Figures of a training job beside those that its plan had predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.planning.search.amounts import DEARER, SLOWER, compared, duration, hourly, money

_MORE: Final = ("more", "less", "memory")
_SAME: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a job, as it was and as it was predicted."""

    name: str
    """``step``, ``time``, ``cost`` or ``memory``."""
    measured: float
    """Seconds, US dollars or GiB."""
    predicted: float
    low: float | None
    """Ends of the interval that holds four in five measurements; ``None``: it was not pinned."""
    high: float | None
    note: str = ""

    @property
    def off(self) -> float:
        """The relative error: what was measured over what was predicted, less 1."""
        return self.measured / self.predicted - 1

    @property
    def inside(self) -> bool | None:
        """The interval held; ``None``: there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    def __str__(self) -> str:
        form, words = _WORDS[self.name]
        text = f"{form(self.measured)}{self.note}, predicted {form(self.predicted)}"
        if self.low is not None and self.high is not None:
            text += f" ({form(self.low)} to {form(self.high)})"
        if abs(self.off) < _SAME:
            return f"{text}: as predicted"
        place = {True: ", inside the interval", False: ", outside the interval", None: ""}
        return f"{text}: {compared(1 + self.off, *words)}{place[self.inside]}"


def _gib(value: float) -> str:
    return f"{value:,.3g} GiB" if value < 10 else f"{value:,.0f} GiB"


_WORDS: Final[Mapping[str, tuple[Callable[[float], str], tuple[str, str, str]]]] = {
    "step": (duration, SLOWER),
    "time": (duration, SLOWER),
    "cost": (money, DEARER),
    "memory": (_gib, _MORE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A training job and the figures of it that its plan had predicted."""

    job: str
    status: str
    run_id: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]

    def data(self) -> dict[str, object]:
        """Return the outcome as JSON."""
        return {
            "job": self.job,
            "status": self.status,
            "run_id": self.run_id,
            "figures": {
                each.name: {
                    "measured": each.measured,
                    "predicted": each.predicted,
                    "low": each.low,
                    "high": each.high,
                    "off": each.off,
                    "inside": each.inside,
                }
                for each in self.figures
            },
            "notes": list(self.notes),
        }


def outcome(pin: Mapping[str, Any], job: Mapping[str, Any], run_id: str) -> Outcome:
    """Compare a job with the plan that a lock file pins.

    `job`: the answer of ``DescribeTrainingJob``. A job on other instances than those planned has no
    figures, and one that did not complete has no time and cost.

    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html
    """
    resources = job.get("ResourceConfig", {})
    ran = (resources.get("InstanceType"), resources.get("InstanceCount"))
    cluster = pin["cluster"]
    planned = (cluster["instance_type"], cluster["instance_count"])
    notes = []
    if ran != planned:
        notes.append(f"ran on {ran[1]} x {ran[0]}, but {planned[1]} x {planned[0]} are planned")
    status = job["TrainingJobStatus"]
    if status != "Completed":
        notes.append(f"{status.lower()}, so that its time and cost are no whole training's")
    steps = _step_and_memory(pin["predicted"], job)
    totals = _totals(pin, job) if status == "Completed" else ()
    figures = tuple([*steps, *totals] if ran == planned else [])
    if ran == planned and not any(each.name == "step" for each in figures):
        notes.append("its steps were not measured; see `measured_steps`")
    return Outcome(
        job=job["TrainingJobName"],
        status=status,
        run_id=run_id,
        figures=figures,
        notes=tuple(notes),
    )


def _step_and_memory(predicted: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the figures that the runtime reports as metrics."""
    metrics = {each["MetricName"]: each["Value"] for each in job.get("FinalMetricDataList") or ()}
    for name, key, metric in (
        ("step", "step_s", "step_time_s"),
        ("memory", "memory_gib", "peak_memory_gib"),
    ):
        value = metrics.get(f"orchestration:{metric}")
        if value and key in predicted:
            low, expected, high = predicted[key]
            yield Figure(name=name, measured=value, predicted=expected, low=low, high=high)


def _totals(pin: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the time of the job and its bill."""
    predicted = pin["predicted"]
    low, expected, high = predicted.get("time_s", (None, 3600 * predicted["hours"], None))
    time = job.get("TrainingTimeInSeconds")
    if time and expected:
        note = " with start and end"
        yield Figure(name="time", measured=time, predicted=expected, low=low, high=high, note=note)
    billed, price = job.get("BillableTimeInSeconds"), predicted.get("price")
    low, expected, high = predicted.get("cost_usd") or (None, predicted.get("usd"), None)
    if billed and price is not None and expected:
        count = pin["cluster"]["instance_count"]
        # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html:
        # the billed time is one instance's.
        rate = price["usd_per_hour"]
        yield Figure(
            name="cost",
            measured=billed / 3600 * count * rate,
            predicted=expected,
            low=low,
            high=high,
            note=f" ({duration(billed)} billed of {count} at {hourly(rate)})",
        )
