"""The objects that a question and its answer are kept in, below a stage's place in a run."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

QUESTION: Final = "approval.json"
"""The question, and later its answer, as a JSON object."""
TOKEN: Final = "token.json"  # noqa: S105 (a name)
"""The task token of a state machine that waits."""
STATE: Final = "state"
"""The field, and the key of the object's metadata, that says how the question stands."""
ASKED: Final = "asked"

Decision: TypeAlias = Literal["approved", "rejected"]
DECISIONS: Final[tuple[Decision, ...]] = ("approved", "rejected")
