"""Questions of a run, asked at the terminal, or answered on the command line beforehand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from orchestration.cli.output import note
from orchestration.errors import near

if TYPE_CHECKING:
    from orchestration.direct.asking import OnQuestion
    from orchestration.graph import Workflow
    from orchestration.stages.people.places import Decision


@dataclass(frozen=True, slots=True)
class Replies:
    """The stages whose questions have been answered beforehand."""

    approved: Sequence[str] = ()
    rejected: Sequence[str] = ()

    def person(self, workflow: Workflow, *, alone: bool) -> OnQuestion | None:
        """Return who answers the questions of a run; ``None`` if it has none, or others answer.

        ``alone``: nobody else can, the run being on an embedded AWS of this process.
        """
        from orchestration.direct.asking import asked_by

        asking = asked_by(workflow)
        for option, names in (("--approve", self.approved), ("--reject", self.rejected)):
            for name in names:
                if name not in asking:
                    raise typer.BadParameter(
                        f"stage {name!r} asks nobody{near(name, asking)}", param_hint=option
                    )
        open_ = [name for name in asking if name not in {*self.approved, *self.rejected}]
        at_terminal = sys.stdin.isatty()
        if open_ and alone and not at_terminal:
            raise typer.BadParameter(
                f"stage {open_[0]!r} asks a person, and nobody is at a terminal here: answer "
                f"beforehand, --approve {open_[0]} or --reject {open_[0]}",
                param_hint="--approve",
            )
        return (self._reply if at_terminal else self._beforehand) if asking else None

    def _beforehand(self, stage: str, question: str) -> tuple[Decision, str] | None:
        note(f"{stage} asks: {question}")
        if stage in self.approved:
            return "approved", ""
        return ("rejected", "") if stage in self.rejected else None

    def _reply(self, stage: str, question: str) -> tuple[Decision, str] | None:
        known = self._beforehand(stage, question)
        if known is not None:
            return known
        yes = typer.confirm("Approve?", err=True)
        comment = typer.prompt("Comment", default="", show_default=False, err=True)
        return ("approved" if yes else "rejected"), comment
