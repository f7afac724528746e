"""Step time, throughput, peak memory and MFU, printed where SageMaker's metrics pick them up.

A step is one change of the weights. The first steps are left out: they compile, tune and allocate.
Rank 0 prints; other ranks only count.
"""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
import time
from statistics import median
from typing import Any, Callable, Iterable, Iterator, Mapping, TypeVar

from .ranks import Cluster

Batch = TypeVar("Batch")

PROBE = "ORCHESTRATION_PROBE_STEPS"
"""Environment variable that ends the script, with status 0, after so many steps."""

_WARM_UP = 5

# Dense 16-bit TFLOP/s of one device, by family of instances; tests hold them to the catalog.
_PEAK_TFLOPS = {
    "g4dn": 65.0, "g5": 70.0, "g6": 121.0, "g6e": 362.0,
    "p3": 125.0, "p3dn": 125.0, "p4d": 312.0, "p4de": 312.0, "p5": 989.0, "p5e": 989.0,
    "p5en": 989.0, "p6-b200": 2250.0, "p6-b300": 2250.0, "p6e-gb200": 2500.0,
    "trn1": 95.0, "trn1n": 95.0, "trn2": 166.75,
}  # fmt: skip


def measured_steps(
    batches: Iterable[Batch],
    *,
    tokens: float | None = None,
    samples: float | None = None,
    flops: float | None = None,
    accumulation: int = 1,
) -> Iterator[Batch]:
    """Yield the batches of a training loop, and measure its steps.

    `tokens`, `samples`, `flops`: those of one step of the whole cluster (6 x parameters x tokens is
    the usual count of operations), for throughput and MFU. `accumulation`: batches of a step.
    Loops with the same amounts (epochs, for example) are measured together.

    >>> for batch in measured_steps(range(3), samples=64):
    ...     loss = 1 / (1 + batch)
    """
    meter = _meter(tokens, samples, flops)
    meter.begin()
    try:
        for number, batch in enumerate(batches, start=1):
            yield batch
            if number % accumulation == 0:
                meter.step()
    finally:
        meter.finish()


class StepMeter:
    """Measures the steps of a loop that is not the script's own: call `step` after each.

    >>> meter = StepMeter(samples=64, environ={}, warm_up=1, every=2)
    >>> meter.step()
    >>> meter.figures()
    {}
    """

    def __init__(
        self,
        *,
        tokens: float | None = None,
        samples: float | None = None,
        flops: float | None = None,
        warm_up: int = _WARM_UP,
        every: int = 20,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start the clock; `every`: steps between two lines of figures."""
        environ = os.environ if environ is None else environ
        self._here = Cluster.from_environment(environ)
        self._amounts = {"tokens": tokens, "samples": samples}
        self._flops = flops
        self._last = int(environ.get(PROBE) or 0)
        # Each step of a probe counts; in training, windows, so that devices are rarely waited for.
        self._every = 1 if self._last else every
        self._warm_up = min(warm_up, self._last // 2) if self._last else warm_up
        self._peak_tflops = _peak_tflops(environ)
        self._clock = clock
        self._steps = self._printed = 0
        self._times: list[float] = []
        self._memory_gib = 0.0
        self.begin()

    def begin(self) -> None:
        """Start the clock anew: what happened since the last step is no part of the next."""
        self._since = self._clock()
        self._in_window = 0

    def step(self) -> None:
        """Count a step; the last one of a probe ends the script with status 0."""
        self._steps += 1
        if self._here.is_first:
            self._time()
        if self._last and self._steps >= self._last:
            self.finish()
            raise SystemExit(0)

    def finish(self) -> None:
        """Print the figures after the last step of a loop."""
        if not self._here.is_first or self._steps == self._printed:
            return
        if self._in_window:
            self._close()
        self._memory_gib = max(self._memory_gib, _device_memory_gib(self._here.accelerator))
        self._print()

    def figures(self) -> dict[str, float]:
        """Return what was measured so far, by name; nothing before the end of the warm-up."""
        if not self._times:
            return {}
        seconds = median(self._times)
        figures: dict[str, float] = {"step_time_s": seconds}
        for name, amount in self._amounts.items():
            if amount is not None and seconds > 0:
                figures[f"{name}_per_s"] = amount / seconds
        if self._memory_gib:
            figures["peak_memory_gib"] = self._memory_gib
        devices = self._here.devices_per_host * self._here.host_count
        if self._flops is not None and self._peak_tflops and devices and seconds > 0:
            figures["mfu"] = self._flops / seconds / (self._peak_tflops * 1e12 * devices)
        figures["steps"] = self._steps
        return figures

    def _time(self) -> None:
        if self._steps <= self._warm_up:
            if self._steps == self._warm_up:
                _wait_for_devices()
            self.begin()
            return
        self._in_window += 1
        if self._in_window == self._every:
            self._close()
            if not self._last:
                self._print()

    def _close(self) -> None:
        """End a window of steps with its mean."""
        _wait_for_devices()
        self._times.append((self._clock() - self._since) / self._in_window)
        self._memory_gib = max(self._memory_gib, _allocated_gib())
        self.begin()

    def _print(self) -> None:
        self._printed = self._steps
        figures = " ".join(f"{name}={value:.6g}" for name, value in self.figures().items())
        if figures:
            # In one piece: other processes write to the same log.
            sys.stdout.write(f"orchestration: {figures}\n")
            sys.stdout.flush()


@functools.lru_cache(maxsize=None)
def _meter(tokens: float | None, samples: float | None, flops: float | None) -> StepMeter:
    return StepMeter(tokens=tokens, samples=samples, flops=flops)


def _peak_tflops(environ: Mapping[str, str]) -> float | None:
    """Look up a device's 16-bit peak by the instance type that SageMaker states.

    >>> _peak_tflops({"SM_CURRENT_INSTANCE_TYPE": "ml.p4d.24xlarge"})
    312.0
    """
    parts = environ.get("SM_CURRENT_INSTANCE_TYPE", "").split(".")
    return _PEAK_TFLOPS.get(parts[1]) if len(parts) == 3 else None


def _wait_for_devices() -> None:
    """Wait for what PyTorch has queued on a device; kernels run on after their calls return."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    xla: Any = sys.modules.get("torch_xla.core.xla_model")
    if xla is not None:
        xla.wait_device_ops()


def _allocated_gib() -> float:
    """Return the peak memory of this process on its device, as PyTorch counts it."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return float(torch.cuda.max_memory_reserved()) / 2**30
    return 0.0


def _device_memory_gib(accelerator: str) -> float:
    """Return the memory in use on the host's fullest device; without one, this process's peak.

    Allocators return nothing, so that what is in use at the end of a loop is its peak.
    """
    if accelerator == "neuron":
        return 0.0
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        shown = subprocess.run(  # noqa: S603 - the words are our own
            command, stdout=subprocess.PIPE, text=True, timeout=30, check=True
        ).stdout
        return max(float(line) for line in shown.split()) / 1024
    except (OSError, ValueError, subprocess.SubprocessError):
        # Kilobytes on Linux, where containers run.
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        return _allocated_gib() or resident
