"""Cases: requests to a new model, and what it has to answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, cast

from pydantic import BeforeValidator, Field, JsonValue

from orchestration.checks.places import place
from orchestration.errors import Problem
from orchestration.graph import Part
from orchestration.stages.answers.script import JudgingJob
from orchestration.stages.values import Model, Scalar

MOST_CASES: Final = 20
OK: Final = 200
LONGEST_MS: Final = 60_000
"""Milliseconds that SageMaker gives a container for an answer:
https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html (November 2026)
"""
_STATUSES: Final = range(400, 600)
_WHOLE: Final = "@"


def place_of(written: str) -> tuple[Part, ...]:
    """Return the parts of a place in an answer: ``labels[0].name``; ``@`` is the whole answer.

    A :class:`ValueError` says what is wrong with it.
    """
    if written == _WHOLE:
        return ()
    return place(written.removeprefix(_WHOLE) if written.startswith(f"{_WHOLE}[") else written)


class SmokeTest(Model):
    """A real request that the deployed endpoint has to answer before the run counts as done."""

    request: JsonValue
    """The body: JSON, or text of another content type (which Step Functions cannot send)."""
    content_type: str = Field(default="application/json", min_length=1, max_length=1024)
    """Content type of the request."""

    @property
    def body(self) -> JsonValue:
        """The body, parsed where it is a text that holds JSON."""
        if not isinstance(self.request, str) or "json" not in self.content_type.lower():
            return self.request
        try:
            return cast(JsonValue, json.loads(self.request))
        except ValueError:
            return self.request


class Case(SmokeTest):
    """A request that a new model must answer as expected."""

    status: int = Field(default=OK, strict=True)
    """The status that the model's container answers with: 200, or 400 to 599 for a request that it
    has to refuse."""
    expected: dict[str, Scalar] = Field(default={}, max_length=10)
    """Values in the answer, which is JSON then, by JMESPaths of fields, numbers and filters:
    ``{"predictions[0].label": cat}``; ``@`` is the whole answer."""
    max_latency_ms: int | None = Field(default=None, strict=True, ge=1, le=LONGEST_MS)
    """Milliseconds within which the answer must come, as the run sees it: its way to the endpoint
    and back counts, and on Step Functions the changes of state around the request."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is sent, or expected, as it can't be."""
        is_text = isinstance(self.request, str)
        if not is_text and "json" not in self.content_type.lower():
            yield Problem("request", f"is JSON, and content_type is {self.content_type}; give text")
        if self.status != OK and self.status not in _STATUSES:
            yield Problem("status", f"expected 200, or 400 to 599, got {self.status}")
        if self.status != OK and self.expected:
            yield Problem("expected", "SageMaker hands on no fields of a refusal; remove it")
        for written in self.expected:
            try:
                place_of(written)
            except ValueError as error:
                yield Problem("expected", str(error))


def _cases(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(
            "only a pipeline in a file names a file of cases; give the cases themselves"
        )
    return value


def _or_file(schema: dict[str, Any]) -> None:
    cases = {key: schema.pop(key) for key in list(schema)}
    schema["anyOf"] = [cases, {"type": "string", "description": "A YAML or JSON file of cases."}]


Cases = Annotated[
    tuple[Case, ...],
    BeforeValidator(_cases),
    Field(min_length=1, max_length=MOST_CASES, json_schema_extra=_or_file),
]


class Trial(Model):
    """Cases for a new model: before it gets any traffic, and again when it has all of it."""

    cases: Cases
    """The requests, or the path of a YAML or JSON file with a list of them, relative to the file
    that describes the pipeline."""
    after: bool = Field(default=False, strict=True)
    """Send them again to the endpoint once it serves the new model. Where one is not answered as
    expected, the endpoint goes back to its configuration before, and the run fails with
    ``CheckFailed`` (too late an answer: ``CheckTooSlow``)."""

    job: JudgingJob | None = None
    """The job of the stage's ``judge``; by default one machine with the model's container."""

    def problems(self) -> Iterator[Problem]:
        """Yield the errors of cases, by their places."""
        for problem in () if self.job is None else self.job.problems():
            yield problem.within("job")
        for number, case in enumerate(self.cases):
            for problem in case.problems():
                yield Problem(f"cases[{number}].{problem.field}", problem.message)


def as_trial(value: object) -> object:
    """Return a list of cases as the trial that it is short for."""
    if isinstance(value, list | tuple):
        return {"cases": value} if value else None
    return value
