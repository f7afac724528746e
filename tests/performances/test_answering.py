"""An answer to a question, request by request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.errors import StartError
from orchestration.execution.effects import Note, Pause, Performance, Send, ServiceError
from orchestration.execution.people.answering import Answer, answered

YES = Answer(state="approved", by="ada", at="2026-11-22T09:30:00Z")
ASKED = {"state": "asked", "question": "Deploy?"}


def read(document: dict[str, Any]) -> dict[str, Any]:
    return {"Body": json.dumps(document), "ETag": '"1"'}


def refused(code: str) -> ServiceError:
    return ServiceError(code, "no")


def driven(performance: Performance[bool], *answers: Any) -> tuple[Any, list[str], list[str]]:
    """Give answers to the requests in order; what came back, the operations, the notes."""
    left, sent, notes, reply = list(answers), list[str](), list[str](), None
    try:
        while True:
            effect = (
                performance.throw(reply)
                if isinstance(reply, Exception)
                else (performance.send(reply))
            )
            reply = None
            if isinstance(effect, Send):
                sent.append(effect.request.operation)
                reply = left.pop(0)
            elif isinstance(effect, Note):
                notes.append(effect.text)
            else:
                assert isinstance(effect, Pause)
    except StopIteration as end:
        return end.value, sent, notes


def test_an_answer_stands_though_its_token_can_not_be_read() -> None:
    answer = answered("s3://b/runs/r", "ok", YES)
    woken, sent, notes = driven(answer, read(ASKED), {}, refused("AccessDenied"))
    assert (woken, sent) == (False, ["GetObject", "PutObject", "GetObject"])
    assert notes[0].startswith("the answer stands, and no state machine was woken:")


def test_a_token_of_an_earlier_wait_is_read_again() -> None:
    answer = answered("s3://b/runs/r", "ok", YES)
    spent, tokens = refused("TaskTimedOut"), [read({"token": "1"}), read({"token": "2"})]
    woken, sent, _ = driven(answer, read(ASKED), {}, tokens[0], spent, tokens[1], {})
    assert woken
    assert sent[2:] == ["GetObject", "SendTaskSuccess"] * 2


def test_an_answer_whose_response_was_lost_is_its_own() -> None:
    mine = {"question": "Deploy?", "state": "approved", "by": YES.by, "at": YES.at, "comment": ""}
    answer = answered("s3://b/runs/r", "ok", YES)
    changed = refused("PreconditionFailed")
    woken, _, _ = driven(answer, read(ASKED), changed, read(mine), refused("NoSuchKey"))
    assert not woken
    other = answered("s3://b/runs/r", "ok", YES)
    theirs = {**mine, "state": "rejected", "by": "bob", "at": "noon"}
    with pytest.raises(StartError, match="was rejected by bob at noon; the first answer counts"):
        driven(other, read(ASKED), changed, read(theirs))


def test_nobody_is_woken_where_no_state_machine_can_wait() -> None:
    answer = answered("s3://b/runs/r", "ok", YES, wakes=False)
    assert driven(answer, read(ASKED), {}) == (False, ["GetObject", "PutObject"], [])
