"""An update of what others may be changing: an endpoint, or an inference component."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from orchestration.expressions import Any, Compare, Result, Tree, join
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Output,
    Recovery,
    Require,
    Step,
)
from orchestration.stages.endpoints.making import Made
from orchestration.stages.values import Text

UPDATING: Final = ErrorPattern("ValidationException", "Cannot update in-progress")
_OF_LOAD: Final = 3
"""Changes by the load that an update waits for, each as long as for an update of its own."""


class Settling(Protocol):
    """The thing that is updated: an endpoint, or an inference component."""

    @property
    def made(self) -> Made:
        """The model, and its deployment."""

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes it: the output ``config``."""


def sent(states: Settling, update: Call, before: Tree, *, scaled: bool) -> tuple[Step, ...]:
    """Return the steps that send an update of what served the configuration, or model, ``before``.

    What is under way may be this very update, whose response was lost; or a change of the number of
    instances or copies, after which the update is sent again: a load (``scaled``) may change it
    several times. Should it be someone else's update, that serves in the end, which :func:`untaken`
    finds.
    """
    return _sent(states, update, before, _OF_LOAD if scaled else 1)


def _sent(states: Settling, update: Call, before: Tree, changes: int) -> tuple[Step, ...]:
    """Return the steps that wait for so many changes, and take what follows for this update."""
    if not changes:
        return (replace(update, adopt=Adopt(exists=UPDATING)),)
    arn = f"{update.operation.name.removeprefix('Update')}Arn"
    outputs = {"arn": Output((arn,), kind="string")}
    first = replace(update, outputs=outputs, recoveries=(Recovery(UPDATING, {"arn": ""}),))
    step = update.name.removeprefix(f"{states.made.stage.name}.")
    freed = states.settled(f"{step}_freed", ())
    again = replace(update, name=f"{update.name}_again", after=())
    unsent = Choose(
        name=f"{update.name}_unsent",
        condition=Compare("eq", Result(freed.name, "config"), before),
        then=Graph(_sent(states, again, before, changes - 1)),
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


def untaken(made: Made, noun: str, name: Text, after: tuple[str, ...]) -> Require:
    """Require that what serves in the end is this run's, or served before: nobody else's."""
    stage = made.stage.name
    config, before = (Result(f"{stage}.{step}", "config") for step in ("settled", "look"))
    return Require(
        name=f"{stage}.untaken",
        condition=Any((Compare("eq", config, made.name), Compare("eq", config, before))),
        error="EndpointTaken",
        cause=join(
            *(
                f"stage {stage}: {noun} ",
                name,
                " serves ",
                config,
                ", which another deployment gave it meanwhile",
            ),
            *(", instead of ", made.name, "; run again when the other has ended"),
        ),
        after=after,
    )
