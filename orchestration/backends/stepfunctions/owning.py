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

_ID: Final = "$states.context.StateMachine.Id"
UNQUALIFIED: Final = f"$join($split({_ID}, ':', 7), ':')"
"""The ARN of the state machine, of an execution that was started by an alias or a version, too.

AWS does not say whether such an execution's context names the state machine or what started it
(November 2026). An ARN has six colons, and the name behind the last has none.
https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html
"""


def owned(definition: Mapping[str, Json], *, qualified: bool) -> dict[str, Json]:
    """Return a definition in which every list of tags with the run's has the machine's, too.

    ``qualified``: executions are started by an alias.
    """
    mark: Json = {"Key": MACHINE, "Value": enclosed(UNQUALIFIED if qualified else _ID)}
    return cast("dict[str, Json]", _marked(definition, mark))


def _marked(tree: Json, mark: Json) -> Json:
    if isinstance(tree, Mapping):
        return {key: _marked(value, mark) for key, value in tree.items()}
    if isinstance(tree, list):
        marked = any(isinstance(item, Mapping) and item.get("Key") == RUN for item in tree)
        return [*(_marked(item, mark) for item in tree), *([mark] if marked else [])]
    return tree
