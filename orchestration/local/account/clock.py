"""Simulated time: pauses are shortened, limits on work are not.

One rule decides about every number of seconds in the embedded AWS:

* A *pause*, in which nothing really happens (provisioning, a Wait state, the back-off of a retry),
  takes `scale` real seconds for each of its seconds.
* A *limit* on work that really runs (`MaxRuntimeInSeconds`, `TimeoutSeconds`, the start of a model)
  is as many seconds here as on AWS: an epoch on this machine does not take a fiftieth of its time.
  Limits that end a job count `WorkingTime`, so that a busy machine ends nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Converts seconds of AWS to real seconds; a pause takes `scale` times as long."""

    scale: float

    def pause(self, simulated_s: float) -> float:
        """Return the real seconds of a pause, in which no work runs."""
        return max(0.0, simulated_s * self.scale)

    def limit(self, simulated_s: float) -> float:
        """Return the real seconds of a limit on work that runs; never fewer than on AWS."""
        return max(self.pause(simulated_s), simulated_s)
