"""The steps that send the requests of cases to an endpoint, and look at its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from orchestration.expressions import All, Compare, Result, Tree, join
from orchestration.expressions.scalars import text
from orchestration.graph import (
    LATENCY,
    Call,
    ErrorPattern,
    Failure,
    Operation,
    Output,
    Recovery,
    Require,
    Step,
)
from orchestration.refs import Expression
from orchestration.stages.answers.script import TEXT, Judging
from orchestration.stages.endpoints.cases import OK, Case, place_of
from orchestration.stages.values import Text

_JSON: Final = "application/json"
_ANSWERED: Final = Output(("NewSessionId",), kind="string", default="an answer")
"""In few responses (those that open a session), and empty where a model refuses as it should."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Cases that an endpoint has to answer, one after the other."""

    name: str
    """The beginning of the names of the steps: ``deploy.trial``."""
    endpoint: Text
    error: str
    """The error of a case that is not answered as expected."""
    too_slow: str
    """The error of a case that is answered as expected, and too late."""
    remedy: str | Expression[object]
    """Words behind its cause: what becomes of the endpoint."""
    where: Mapping[str, Tree] = field(default_factory=dict)
    """Fields that say what of the endpoint is asked: its variant, or its component."""
    judging: Judging | None = None
    """The script that judges the answers, if there is one."""

    def steps(self, cases: tuple[Case, ...], after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the requests, each with what its answer must be."""
        steps: list[Step] = []
        recorded: list[Call] = []
        for number, case in enumerate(cases, start=1):
            steps.append(self._asked(number, case, after))
            after = (steps[-1].name,)
            if case.expected or case.status != OK:
                steps.append(self._answered(number, case, after))
                after = (steps[-1].name,)
            if case.max_latency_ms is not None:
                steps.append(self._in_time(number, case.max_latency_ms, after))
                after = (steps[-1].name,)
            if self.judging is not None and case.status == OK:
                recorded.append(self.judging.recorded(number, _told(case), after))
                steps.append(recorded[-1])
                after = (steps[-1].name,)
        if self.judging is not None:
            steps += self.judging.judged(recorded, self.error, self.remedy, after)
        return tuple(steps)

    def _asked(self, number: int, case: Case, after: tuple[str, ...]) -> Call:
        whole: dict[str, Tree] = {
            "EndpointName": self.endpoint,
            "ContentType": case.content_type,
            **({"Accept": _JSON} if case.expected or "json" in case.content_type else {}),
            "Body": cast(Tree, case.body),
            **self.where,
        }
        outputs: dict[str, Output] = {
            f"value_{count}": Output(("Body",), parse=True, inside=place_of(place), default=None)
            for count, place in enumerate(case.expected)
        }
        if case.status != OK:
            outputs["answered"] = _ANSWERED
        elif self.judging is not None:
            outputs[TEXT] = Output(("Body",), kind="string")
        failure = Failure(error=self.error, remedy=join(f"case {number}; ", self.remedy))
        return Call(
            name=f"{self.name}_{number}",
            operation=Operation("sagemaker-runtime", "InvokeEndpoint", whole),
            outputs=outputs,
            recoveries=_refusals(case.status),
            failure=failure if case.status == OK else None,
            timed=case.max_latency_ms is not None,
            after=after,
        )

    def _in_time(self, number: int, most_ms: int, after: tuple[str, ...]) -> Require:
        asked = f"{self.name}_{number}"
        took = Result(asked, LATENCY)
        return Require(
            name=f"{asked}_in_time",
            condition=Compare("le", took, most_ms),
            error=self.too_slow,
            cause=join(
                f"case {number}; expected an answer within {most_ms} ms, got it after ",
                *(took, " ms; ", self.remedy),
            ),
            after=after,
        )

    def _answered(self, number: int, case: Case, after: tuple[str, ...]) -> Require:
        asked = f"{self.name}_{number}"
        conditions: list[Expression[bool]] = []
        words: list[str | Expression[object]] = []
        if case.status != OK:
            answered = Result(asked, "answered")
            conditions.append(Compare("eq", answered, ""))
            words += [f"; expected status {case.status}, got ", answered]
        for count, (place, value) in enumerate(case.expected.items()):
            answer = Result(asked, f"value_{count}")
            conditions.append(Compare("eq", answer, value))
            words += [f"; expected {text(value)} as {place}, got ", answer]
        return Require(
            name=f"{asked}_answers",
            condition=All(tuple(conditions)),
            error=self.error,
            cause=join(f"case {number}", *words, "; ", self.remedy),
            after=after,
        )


def _told(case: Case) -> dict[str, Tree]:
    """Return a case as a script that judges its answer reads it."""
    return {"request": cast(Tree, case.body), "content_type": case.content_type}


def _refusals(status: int) -> tuple[Recovery, ...]:
    """Return what a model's refusals mean that has to refuse with a status."""
    if status == OK:
        return ()
    # SageMaker's words: "Received client error (400) from primary with message …".
    right = ErrorPattern("ModelError", f"error ({status}) from")
    other = ErrorPattern("ModelError", "Received ")
    return (
        Recovery(right, {"answered": ""}),
        Recovery(other, {"answered": "another one"}),
    )
