"""Simulated time: seconds of AWS told as fewer seconds here."""

from __future__ import annotations

from dataclasses import dataclass

# A process really runs: what bounds it is never scaled below this many real seconds.
SHORTEST_LIMIT_S = 30.0


@dataclass(frozen=True)
class Clock:
    """Tells how long a simulated span lasts here: `scale` real seconds per simulated second."""

    scale: float

    def pause(self, simulated_s: float) -> float:
        """Real seconds of a span in which nothing really happens."""
        return max(0.0, simulated_s * self.scale)

    def limit(self, simulated_s: float) -> float:
        """Real seconds that bound work which really happens, such as a training job."""
        return max(self.pause(simulated_s), min(simulated_s, SHORTEST_LIMIT_S))
