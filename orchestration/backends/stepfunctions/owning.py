"""The mark of a state machine on what its executions create.

The same pipeline may be run by others in the same account, with the same tags and the same
beginnings of names; a companion must know what an execution of its own state machine has created.
The mark names the machine and not the execution: executions of one run send equal requests, and a
client token is refused with a different one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from orchestration.backends.jsonata import enclosed
from orchestration.cleanup import MACHINE, RUN
from orchestration.expressions import Json

_MARK: Final[Json] = {"Key": MACHINE, "Value": enclosed("$states.context.StateMachine.Id")}


def owned(tree: Json) -> Json:
    """Return a definition in which every list of tags with the run's has the machine's, too."""
    if isinstance(tree, Mapping):
        return {key: owned(value) for key, value in tree.items()}
    if isinstance(tree, list):
        marked = any(isinstance(item, Mapping) and item.get("Key") == RUN for item in tree)
        return [*cast("list[Json]", [owned(item) for item in tree]), *([_MARK] if marked else [])]
    return tree
