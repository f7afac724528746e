# Copied from orchestration.runtime 0.1.0: change it there, not here.
"""Learning rates for larger batches, and how they change while training goes on.

Goyal et al. 2017, Accurate, Large Minibatch SGD: https://arxiv.org/abs/1706.02677
Li et al. 2024, Surge Phenomenon in Optimal Learning Rate: https://arxiv.org/abs/2405.14578
Loshchilov and Hutter 2016, SGDR (the half cosine): https://arxiv.org/abs/1608.03983
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_DECAYS = ("constant", "linear", "cosine", "stepwise")


def scaled_linearly(rate: float, batch: float, new_batch: float) -> float:
    """Scale a rate that is good for `batch` samples per step, for SGD: k times the batch, k times.

    Holds up to a batch of about 8192 on ImageNet, and only with a warm-up from `rate` (Goyal et
    al. take 5 epochs). https://arxiv.org/abs/1706.02677 section 2.1

    >>> scaled_linearly(0.1, 256, 8192)
    3.2
    """
    _positive(rate=rate, batch=batch, new_batch=new_batch)
    return rate * (new_batch / batch)


def scaled_by_root(
    rate: float, batch: float, new_batch: float, *, critical_batch: float | None = None
) -> float:
    """Scale a rate that is good for `batch` samples per step, for Adam and its kind.

    The best rate grows with the root of the batch while that is small, is greatest at the critical
    batch (the gradient's noise scale, in samples) and falls beyond. Without `critical_batch` it is
    taken to be far away. https://arxiv.org/abs/2405.14578 theorem 3

    >>> scaled_by_root(3e-4, 256, 1024)
    0.0006
    >>> round(scaled_by_root(3e-4, 256, 1024, critical_batch=512), 6)
    0.0003
    """
    _positive(rate=rate, batch=batch, new_batch=new_batch)
    if critical_batch is None:
        return rate * math.sqrt(new_batch / batch)
    _positive(critical_batch=critical_batch)
    return rate * _surge(new_batch / critical_batch) / _surge(batch / critical_batch)


def _surge(relative_batch: float) -> float:
    """The best rate for a batch in units of the critical one, in units of the greatest."""
    root = math.sqrt(relative_batch)
    return 2 / (root + 1 / root)


@dataclass(frozen=True)
class Schedule:
    """The learning rate at each step, from 0: a linear warm-up, then a decay.

    A pure function of the step, so that a resumed run goes on as if it had not stopped.

    >>> rate = Schedule(peak=3.2, start=0.1, warmup_steps=5, total_steps=105, decay="cosine")
    >>> [round(rate(step), 3) for step in (0, 4, 5, 55, 105)]
    [0.72, 3.2, 3.2, 1.6, 0.0]
    """

    peak: float
    total_steps: int
    """The floor is reached at this step, and kept."""
    warmup_steps: int = 0
    """The rate is `peak` from the last of them."""
    start: float = 0.0
    """Where the warm-up sets out: the rate for the small batch (Goyal et al.), or 0. More than
    `peak`, as on a cluster smaller than that batch was for, counts as `peak`."""
    floor: float = 0.0
    """What a linear decay or a half cosine ends at."""
    decay: str = "constant"
    """`constant`, `linear`, `cosine` (half a cosine) or `stepwise`."""
    milestones: tuple[int, ...] = ()
    """`stepwise`: from each of these steps on the rate is `factor` times what it was; Goyal et al.
    take epochs 30, 60 and 80 of 90."""
    factor: float = 0.1

    def __post_init__(self) -> None:
        problems = []
        if self.decay not in _DECAYS:
            problems.append(f"decay {self.decay!r} is none of {', '.join(_DECAYS)}")
        if not 0 <= self.warmup_steps <= self.total_steps or self.total_steps < 1:
            problems.append(
                f"warmup_steps={self.warmup_steps}, total_steps={self.total_steps}: "
                "0 <= warmup_steps <= total_steps and 1 <= total_steps have to hold"
            )
        if not (0 <= self.start < math.inf and 0 <= self.floor <= self.peak < math.inf):
            problems.append(
                f"start={self.start}, floor={self.floor}, peak={self.peak}: "
                "finite, not negative, and the floor not above the peak"
            )
        if list(self.milestones) != sorted(set(self.milestones)):
            problems.append(f"milestones {self.milestones} have to grow")
        if bool(self.milestones) != (self.decay == "stepwise"):
            problems.append("milestones and decay='stepwise' belong together")
        if problems:
            raise ValueError("; ".join(problems))

    def __call__(self, step: int) -> float:
        """The learning rate of a step."""
        if step < 0:
            raise ValueError(f"step {step} is less than 0")
        if step < self.warmup_steps:
            share = (step + 1) / self.warmup_steps
            return min(self.start, self.peak) * (1 - share) + self.peak * share
        if self.decay == "constant":
            return self.peak
        if self.decay == "stepwise":
            passed = sum(1 for milestone in self.milestones if milestone <= step)
            return self.peak * self.factor**passed
        share = self._left(step)
        if self.decay == "cosine":
            share = (1 - math.cos(math.pi * share)) / 2
        return self.floor * (1 - share) + self.peak * share

    def relative(self, step: int) -> float:
        """The rate as a share of `peak`, as `torch.optim.lr_scheduler.LambdaLR` wants it.

        >>> Schedule(peak=0.5, total_steps=10, decay="linear").relative(5)
        0.5
        """
        return self(step) / self.peak if self.peak else 0.0

    def _left(self, step: int) -> float:
        """How much of the decay is still to come, from 1 to 0."""
        length = self.total_steps - self.warmup_steps
        return max(0.0, (self.total_steps - step) / length) if length else 0.0


def _positive(**numbers: float) -> None:
    bad = [f"{name}={number}" for name, number in numbers.items() if not 0 < number < math.inf]
    if bad:
        raise ValueError(f"{', '.join(bad)}: has to be positive and finite")
