"""The explanation of one error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An error that a run or a command may end with, for the person who has met it."""

    name: str
    happened: str
    """The cause, in general; the run's own cause has the names and numbers."""
    cure: str
    raised_by: tuple[str, ...]
    """Kinds of stages; or ``stage`` (of many kinds), ``run`` (what drives it) or ``command``."""
    example: str
    """A cause as a run tells it."""
    see: tuple[str, ...] = ()
    """Pages of ``docs/`` to read on."""
    also: tuple[str, ...] = ()
    """Further names of the same, by which a service or a driver of runs calls it."""

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        return {
            "name": self.name,
            "happened": self.happened,
            "cure": self.cure,
            "raised_by": list(self.raised_by),
            "example": self.example,
            "see": list(self.see),
            "also": list(self.also),
        }
