"""An update of what something else may be scaling: an endpoint, or an inference component."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from orchestration.expressions import Compare, Result, Tree
from orchestration.graph import Adopt, Call, Choose, ErrorPattern, Graph, Output, Recovery, Step
from orchestration.stages.endpoints.making import Made

UPDATING: Final = ErrorPattern("ValidationException", "Cannot update in-progress")


class Settling(Protocol):
    """The thing that is updated: an endpoint, or an inference component."""

    @property
    def made(self) -> Made:
        """The model, and its deployment."""

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes it: the output ``config``."""


def sent(states: Settling, update: Call, wanted: Tree, *, scaled: bool) -> tuple[Step, ...]:
    """Return the steps that send an update to the configuration, or the model, ``wanted``.

    What is under way may be this very update, whose response was lost. Where instances or copies
    follow the load (``scaled``), it may be that, too: then the update is sent once more when it has
    settled. Should it be someone else's, ``wanted`` does not serve in the end, which fails the run.
    """
    adopted = replace(update, adopt=Adopt(exists=UPDATING))
    if not scaled:
        return (adopted,)
    arn = f"{update.operation.name.removeprefix('Update')}Arn"
    outputs = {"arn": Output((arn,), kind="string")}
    first = replace(update, outputs=outputs, recoveries=(Recovery(UPDATING, {"arn": ""}),))
    step = update.name.removeprefix(f"{states.made.stage.name}.")
    freed = states.settled(f"{step}_freed", ())
    unsent = Choose(
        name=f"{update.name}_unsent",
        condition=Compare("ne", Result(freed.name, "config"), wanted),
        then=Graph((replace(adopted, name=f"{update.name}_again", after=()),)),
        otherwise=Graph(),
        after=(freed.name,),
    )
    busy = Choose(
        name=f"{update.name}_busy",
        condition=Compare("eq", Result(update.name, "arn"), ""),
        then=Graph((freed, unsent)),
        otherwise=Graph(),
        after=(update.name,),
    )
    return first, busy
