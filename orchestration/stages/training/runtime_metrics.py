"""The figures that ``orchestration.runtime`` prints, as metrics of a training job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FIGURES: Final = ("step_time_s", "tokens_per_s", "samples_per_s", "peak_memory_gib", "mfu")

RUNTIME_METRICS: Final[Mapping[str, str]] = {
    f"orchestration:{name}": rf"orchestration: .*\b{name}=([0-9.e+-]+)" for name in _FIGURES
}
"""Regular expressions for what ``measured_steps`` prints, by metric name."""
