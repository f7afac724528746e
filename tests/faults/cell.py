"""A cell of the matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from orchestration.local import Fault

SCRIPT = "AlgorithmError: ExecuteUserScriptError: the script failed, exit code: 1"
LONG_S: Final = 30_000.0
"""How long a task takes that somebody cancels meanwhile."""
KILLED: Final = "killed right after"
KILLED_BEFORE: Final = "killed right before"
Deed = Literal["cancel a task", "delete all data", "cancel the copy", "stop the search"]
CONCLUDED: Final = "concluded"
Work = Literal["training", "processing", "transform"]
_AT_WORK: Mapping[str, Work] = {
    "train": "training",
    "poll training": "training",
    "tune": "training",
    "evaluate": "processing",
    "poll evaluation": "processing",
    "process": "processing",
    "transform": "transform",
}


@dataclass(frozen=True)
class Cell:
    """One row and column of the matrix."""

    row: str
    kind: str
    faults: tuple[Fault, ...]
    survives: bool
    """The run succeeds nevertheless."""
    served: bool = True
    """An old model is served when the run begins."""
    moment: Fault | None = None
    """The call right after which the driver is killed, or somebody else does something."""
    deed: Deed | None = None
    """What somebody else does at that moment; None where the driver is killed."""
    of: str = "flagship"
    """The pipeline: the flagship, that with stages after its end, or a small one."""
    error: str = ""
    """A part of the error that the run itself ends with, before those stages."""
    arrives: bool = True
    """The row's call after the end gets through at last."""

    @property
    def last(self) -> bool:
        """Whether stages follow the end of the run."""
        return self.of == CONCLUDED

    @property
    def small(self) -> bool:
        """Whether the pipeline has one stage, and no endpoint."""
        return self.of not in ("flagship", CONCLUDED)

    @property
    def killed(self) -> bool:
        """Whether the driver is killed."""
        return self.moment is not None and self.deed is None

    @property
    def work(self) -> Work | None:
        """The kind of job that runs at the row's call."""
        return _AT_WORK.get(self.row)

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.row}: {self.kind}"
