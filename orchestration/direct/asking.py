"""Questions of a run, put to whoever has started it from this process."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from orchestration.direct.answering import answer
from orchestration.direct.clients import Clients, Session
from orchestration.errors import StartError
from orchestration.execution.effects import Request, ServiceError
from orchestration.graph import Call, Workflow, all_steps, stage_of
from orchestration.stages.people.places import ASKED, QUESTION, STATE, Decision

_log = logging.getLogger("orchestration.direct")

OnQuestion: TypeAlias = Callable[[str, str], "tuple[Decision, str] | None"]
"""A function of a stage and its question; returns the answer and a comment, or ``None`` to leave
the answer to others."""

_LOOK_S = 0.5


@contextmanager
def asking(
    on_question: OnQuestion | None, workflow: Workflow, runs: Sequence[str], session: Session
) -> Iterator[None]:
    """Put the questions of a run to a function while it goes on.

    ``runs`` are the S3 URIs that the run may have.
    """
    stages = asked_by(workflow)
    if on_question is None or not stages:
        yield
        return
    over = threading.Event()
    person = _Person(on_question, runs, session, over)
    # A person who is asked when the run is over answers into the void: nobody waits for them.
    threading.Thread(target=person.attend, args=(stages,), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def asked_by(workflow: Workflow) -> list[str]:
    """Return the stages that ask a person."""
    return [
        stage_of(step.name)
        for step in all_steps(workflow.graph)
        if isinstance(step, Call) and step.until is not None and step.until.person is not None
    ]


class _Person:
    def __init__(
        self,
        on_question: OnQuestion,
        runs: Sequence[str],
        session: Session,
        over: threading.Event,
    ) -> None:
        self._on_question = on_question
        self._runs = runs
        self._session = session
        self._clients = Clients(session)
        self._over = over

    def attend(self, stages: Sequence[str]) -> None:
        waiting = list(stages)
        while waiting and not self._over.wait(_LOOK_S):
            waiting = [stage for stage in waiting if not self._attended(stage)]

    def _attended(self, stage: str) -> bool:
        """Ask the person if the stage has asked; returns whether it is done with."""
        for run in self._runs:
            document = self._document(run, stage)
            if document is None:
                continue
            if document.get(STATE) != ASKED:
                return True
            reply = self._on_question(stage, str(document.get("question")))
            if reply is not None:
                self._answer(run, stage, *reply)
            return True
        return False

    def _answer(self, run: str, stage: str, decision: Decision, comment: str) -> None:
        try:
            answer(run, stage, decision, session=self._session, comment=comment)
        except StartError as error:
            _log.warning("%s", error)

    def _document(self, run: str, stage: str) -> dict[str, Any] | None:
        bucket, _, prefix = run.removeprefix("s3://").partition("/")
        where = {"Bucket": bucket, "Key": f"{prefix}/{stage}/{QUESTION}"}
        try:
            response: Any = self._clients.send(Request("s3", "GetObject", where))
        except ServiceError:
            return None
        return dict(json.loads(response["Body"]))
