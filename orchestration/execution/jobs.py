"""One attempt to make a call: its requests, with all values, under the name of the n-th try."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from orchestration.errors import RunError
from orchestration.execution import wording
from orchestration.execution.effects import (
    Failed,
    Outputs,
    Performance,
    Request,
    ServiceError,
    Trouble,
    Verdict,
    Watch,
)
from orchestration.execution.outputs import MISSING, at, checked_response, taken
from orchestration.execution.refusals import error_name
from orchestration.execution.scope import Own
from orchestration.execution.sending import passes, sent
from orchestration.expressions import Environment, Json, evaluate
from orchestration.graph import Call, Operation, Pages
from orchestration.refs import Parameter

LONGEST_NAME = 63
"""Characters of a SageMaker job's name."""


@dataclass(frozen=True, slots=True)
class Job:
    """A call, ready to be sent."""

    call: Call
    request: Request
    values: Environment
    renamed: tuple[str, str] | None = None
    """The name that the step derives, and the one of this try."""

    @property
    def subject(self) -> str:
        """The name in errors and logs: the operation, with the job's name if it has one."""
        adopt = self.call.adopt
        field = adopt.name_field if adopt is not None else None
        name = self.request.parameters.get(field) if field is not None else None
        return f"{self.request.operation} {name or self.call.name}"

    @property
    def label(self) -> str:
        """The machines that it requests, for people to read, if there are alternatives."""
        fallback = self.call.fallback
        return "" if fallback is None else str(evaluate(fallback.label, self.values))

    def numbered(self, number: int) -> Job:
        """Return the same under the name of its n-th try: ``digits-train-0a1b-2``."""
        adopt = self.call.adopt
        if number == 1 or adopt is None or adopt.name_field is None:
            return self
        name = str(self.request.parameters[adopt.name_field])
        suffix = f"-{number}"
        new = name[: LONGEST_NAME - len(suffix)].rstrip("-") + suffix
        parameters = {**self.request.parameters, adopt.name_field: new}
        request = replace(self.request, parameters=parameters)
        return replace(self, request=request, renamed=(name, new))

    def may_run(self, error: ServiceError) -> bool:
        """Return whether it may run although its call failed, and can be asked for by its name."""
        until = self.call.until
        return error.unsure and until is not None and bool(until.absent)

    def failed(self, error: ServiceError) -> RunError:
        """Return what the refusal of its call fails the step with."""
        place = wording.place(self.request.service, self.request.parameters)
        subject = "".join(map(str, (self.subject, *place)))
        message = _with_value(error.message, self.request, self.call.operation)
        cause = wording.filled(wording.CALL_REFUSED, subject=subject, message=message)
        definite = error.lasting and not passes(error, self.call.retry)
        return (RunError if definite else Trouble)(error_name(self.request.service, error), cause)

    def evaluated(self, operation: Operation, own: Outputs) -> Request:
        """Return a poll or stop request, which may read the call's own outputs, for this try."""
        parameters = evaluate(operation.request, Own(self.values, self.call.name, own))
        if self.renamed is not None:
            parameters = _renamed(parameters, *self.renamed)
        return requested(operation, parameters, self.values)


@dataclass(frozen=True, slots=True)
class Created:
    """A job that exists, by all that its call was answered."""

    outputs: Outputs
    response: Json = None
    adopted: bool = False
    recovered: bool = False
    doubt: Failed | None = None
    """The end if there is no job after all."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that was refused for lack of capacity or quota."""

    words: str
    hopeful: bool
    """True if waiting may help."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A job that was started or found, and asked for once."""

    watch: Watch
    verdict: Verdict | None


def job(call: Call, values: Environment) -> Job:
    """Return a call with its request evaluated."""
    operation = call.operation
    return Job(call, requested(operation, evaluate(operation.request, values), values), values)


def requested(operation: Operation, parameters: Json, values: Environment) -> Request:
    """Return an operation's request with its parameters, and the role that is assumed for it."""
    role = "" if operation.assumes is None else str(evaluate(operation.assumes, values))
    fields = cast("Mapping[str, Json]", parameters)
    return Request(operation.service, operation.name, fields, role)


def listed(asked: Job, pages: Pages) -> Performance[Outputs]:
    """Send a listing's requests page by page; returns what its folds came to."""
    request, call = asked.request, asked.call
    folds: dict[str, Json] = {name: fold.start for name, fold in pages.folds.items()}
    for _ in range(pages.most):
        try:
            response = yield from sent(request, call.retry)
        except ServiceError as error:
            raise asked.failed(error) from error
        checked_response(response, request.operation, asked.subject)
        page = taken(call.outputs, response, call.name)
        seen = Own(asked.values, call.name, {**page, **folds})
        folds = {name: evaluate(fold.then, seen) for name, fold in pages.folds.items()}
        token = at(response, pages.token)
        if token is MISSING:
            break
        parameters = {**asked.request.parameters, pages.field: cast(Json, token)}
        request = replace(request, parameters=parameters)
    return folds


def _renamed(value: Json, old: str, new: str) -> Json:
    if isinstance(value, Mapping):
        return {key: _renamed(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, old, new) for item in value]
    return new if value == old else value


_LENGTH: Final = re.compile(r"^Invalid length for parameter (\S+), value: \d+", re.MULTILINE)


def _with_value(message: str, request: Request, operation: Operation) -> str:
    """Return botocore's refusal of a text's length with the text, and the parameter it is."""
    refused = _LENGTH.search(message)
    if refused is None:
        return message
    place = re.findall(r"[^.\[\]]+", refused[1])
    value, given = _at(request.parameters, place), _at(operation.request, place)
    if not isinstance(value, str):
        return message
    field = refused[1]
    if isinstance(given, Parameter):
        field = wording.filled(wording.OF_PARAMETER, field=field, name=given.name)
    return wording.filled(wording.WITH_VALUE, message=message, field=field, value=value)


def _at(tree: object, place: Sequence[str]) -> object:
    for name in place:
        if isinstance(tree, Mapping):
            tree = tree.get(name)
        elif isinstance(tree, list | tuple) and name.isdigit():
            tree = tree[int(name)]
        else:
            return None
    return tree
