"""Learning rates for larger batches, and their schedule during training.

Goyal et al. 2017, Accurate, Large Minibatch SGD: https://arxiv.org/abs/1706.02677
Li et al. 2024, Surge Phenomenon in Optimal Learning Rate: https://arxiv.org/abs/2405.14578
Loshchilov and Hutter 2016, SGDR (the half cosine): https://arxiv.org/abs/1608.03983
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_DECAYS = ("constant", "linear", "cosine", "stepwise")


def scaled_linearly(rate: float, batch: float, new_batch: float) -> float:
    """Scale a good rate linearly with the batch, for SGD: k times the batch, k times the rate.

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
    """Scale a good rate with the square root of the batch, for Adam and similar optimisers.

    The best rate grows with the root of a small batch, peaks at the critical batch (the gradient's
    noise scale, in samples) and falls beyond it. Without `critical_batch`, all batches count as
    small. https://arxiv.org/abs/2405.14578 theorem 3

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
    """Compute the best rate, relative to the greatest, for a batch relative to the critical."""
    root = math.sqrt(relative_batch)
    return 2 / (root + 1 / root)


@dataclass(frozen=True)
class Schedule:
    """The learning rate at each step, from 0: a linear warm-up, then a decay.

    A pure function of the step, so a resumed run continues as if it had never stopped.

    >>> rate = Schedule(peak=3.2, start=0.1, warmup_steps=5, total_steps=105, decay="cosine")
    >>> [round(rate(step), 3) for step in (0, 4, 5, 55, 105)]
    [0.72, 3.2, 3.2, 1.6, 0.0]
    """

    peak: float
    total_steps: int
    """The rate reaches the floor at this step, and stays there."""
    warmup_steps: int = 0
    """After these steps the rate is `peak`."""
    start: float = 0.0
    """The rate that the warm-up starts from: the rate for the small batch (Goyal et al.), or 0. A
    greater one than `peak`, as on a small cluster, counts as `peak`."""
    floor: float = 0.0
    """The rate at the end of a linear decay or a half cosine."""
    decay: str = "constant"
    """`constant`, `linear`, `cosine` (half a cosine) or `stepwise`."""
    milestones: tuple[int, ...] = ()
    """`stepwise`: from each of these steps on the rate is `factor` times what it was; Goyal et al.
    take epochs 30, 60 and 80 of 90."""
    factor: float = 0.1

    def __post_init__(self) -> None:
        problems = []
        if self.decay not in _DECAYS:
            problems.append(f"unknown decay {self.decay!r}, expected one of {', '.join(_DECAYS)}")
        if not 0 <= self.warmup_steps <= self.total_steps or self.total_steps < 1:
            problems.append(
                f"warmup_steps={self.warmup_steps}, total_steps={self.total_steps}: "
                "expected 0 <= warmup_steps <= total_steps and 1 <= total_steps"
            )
        if not (0 <= self.start < math.inf and 0 <= self.floor <= self.peak < math.inf):
            problems.append(
                f"start={self.start}, floor={self.floor}, peak={self.peak}: "
                "expected finite, non-negative rates and floor <= peak"
            )
        if list(self.milestones) != sorted(set(self.milestones)):
            problems.append(f"milestones must increase, got {self.milestones}")
        if bool(self.milestones) != (self.decay == "stepwise"):
            problems.append("milestones and decay='stepwise' belong together")
        if problems:
            raise ValueError("; ".join(problems))

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step."""
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
        """Return the rate as a share of `peak`, for `torch.optim.lr_scheduler.LambdaLR`.

        >>> Schedule(peak=0.5, total_steps=10, decay="linear").relative(5)
        0.5
        """
        return self(step) / self.peak if self.peak else 0.0

    def _left(self, step: int) -> float:
        """Return the share of the decay that is still ahead, from 1 to 0."""
        length = self.total_steps - self.warmup_steps
        return max(0.0, (self.total_steps - step) / length) if length else 0.0


def _positive(**numbers: float) -> None:
    bad = [f"{name}={number}" for name, number in numbers.items() if not 0 < number < math.inf]
    if bad:
        raise ValueError(f"{', '.join(bad)}: must be positive and finite")
