"""Answers given from this process, in the name of whoever its session is."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field
from typing import Any

from orchestration.direct.clients import Clients, Session
from orchestration.errors import StartError
from orchestration.execution.driving import driven
from orchestration.execution.effects import Effect, Note, Pause, Request, Send, ServiceError
from orchestration.execution.people.answering import Answer, answered
from orchestration.stages.people.places import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that counts."""

    answer: Answer
    woken: bool
    """True if a state machine waited, and was woken."""
    notes: tuple[str, ...] = ()


def answer(
    run: str, stage: str, decision: Decision, *, session: Session, comment: str = ""
) -> Given:
    """Answer the question of a stage.

    ``run`` is the S3 URI of the run's place in the workspace. Raises
    :class:`~orchestration.errors.StartError` where nobody has asked yet, where an answer stands
    already, and where AWS refuses.
    """
    edge = _Edge(Clients(session))
    try:
        caller: Any = edge.clients.send(Request("sts", "GetCallerIdentity", {}))
        now = datetime.datetime.now(datetime.UTC)
        mine = Answer(
            state=decision, by=caller["Arn"], at=f"{now:%Y-%m-%dT%H:%M:%SZ}", comment=comment
        )
        woken = driven(answered(run, stage, mine), edge)
    except ServiceError as error:
        raise StartError(f"stage {stage} of run {run} can't be answered: {error}") from error
    return Given(answer=mine, woken=woken, notes=tuple(edge.notes))


@dataclass(slots=True)
class _Edge:
    clients: Clients
    notes: list[str] = field(default_factory=list)

    def aborted(self) -> bool:
        return False

    def answer(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                return self.clients.send(request)
            case Pause(seconds):
                time.sleep(seconds)
            case Note(text):
                self.notes.append(text)
            case _:
                raise TypeError(f"an answer does not need {type(effect).__name__}")
        return None
