"""The cells that do not hold, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.test_conformance import BACKENDS, Backend


@dataclass(frozen=True)
class Excuse:
    """Why cells need not hold on a driver."""

    rows: tuple[str, ...]
    kinds: tuple[str, ...]
    on: tuple[Backend, ...]
    reason: str
    defect: bool = False
    """The reason is a defect that is not mended yet."""

    def covers(self, row: str, kind: str, on: Backend) -> bool:
        """Return whether it excuses a cell on a driver."""
        return row in self.rows and kind in self.kinds and on in self.on


EXCUSES = (
    Excuse(
        rows=("delete file system",),
        kinds=("denied", "throttled throughout"),
        on=BACKENDS,
        reason="Nothing but the refused call deletes a file system. The run fails with the refusal;"
        " on Step Functions the companion and its sweep try again.",
    ),
)


def excuse(row: str, kind: str, on: Backend) -> Excuse | None:
    """Return the excuse of a cell on a driver, if there is one."""
    return next((each for each in EXCUSES if each.covers(row, kind, on)), None)
