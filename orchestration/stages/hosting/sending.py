"""An update of an inference component whose copies something else may be changing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestration.expressions import Compare, Result, Tree
from orchestration.graph import Adopt, Call, Choose, Graph, Output, Recovery, Step
from orchestration.stages.hosting.states import UPDATING, ComponentStates

_ARN: Final = {"arn": Output(("InferenceComponentArn",), kind="string")}


def sent(states: ComponentStates, update: Call, wanted: Tree, *, scaled: bool) -> tuple[Step, ...]:
    """Return the steps that send an update to the model ``wanted``.

    What is under way may be this very update, whose response was lost. Where the copies follow the
    load (``scaled``), it may be that, too: then the update is sent once more when it has settled.
    """
    adopted = replace(update, adopt=Adopt(exists=UPDATING))
    if not scaled:
        return (adopted,)
    first = replace(update, outputs=_ARN, recoveries=(Recovery(UPDATING, {"arn": ""}),))
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
