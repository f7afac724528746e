"""Errors of calls: which are sent again, and how others are recognised in a Choice.

An error that a service's model declares comes under a name of its own, such as
``FSx.FileSystemNotFoundException``. Every other one (of SageMaker ``ValidationException`` and
``ThrottlingException``) comes as ``SageMaker.SageMakerException``, from an optimised integration as
``SageMaker.AmazonSageMakerException``; then only the cause tells them apart.
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from orchestration.backends.jsonata import quote
from orchestration.backends.stepfunctions.integrations.services import service
from orchestration.checks.requests import operation_model
from orchestration.errors import UnsupportedError
from orchestration.execution.sending import LONGEST_PAUSE_S, PASSING, UNCLEAR
from orchestration.expressions import Json
from orchestration.graph import Call, ErrorPattern, Operation, Retry

_UNDECLARED = ("Throttling", "SdkClient")
"""Codes that may come under a name of their own though no model declares them."""

_NAME = "$states.input.Error"
_CAUSE = "$states.input.Cause"
_STATUSES = "|".join(status for row in PASSING for status in row.statuses)
_WORDS = (*(words for row in PASSING for words in row.words), f"Code: ({_STATUSES})")
PASSES = f"$contains({_CAUSE}, /{'|'.join(_WORDS)}/)"
"""The condition that an error without a name of its own is one that passes."""
REFUSED = f"$exists({_NAME}) and $not({PASSES})"
"""The condition that there is an error without a name of its own that does not pass."""


def retriers(operation: Operation, retry: Retry, *, unnamed: bool) -> list[Json]:
    """Return ``Retry`` of a Task; with errors that have no name of their own, or without."""
    early = _early(operation, retry)
    if retry.attempts < 2:
        return early
    names = passing(operation)
    names += [n for p in retry.errors if _by_name(p, operation) for n in _names(p, operation)]
    unclear = _generic_names(operation) if unnamed else []
    # Patience that a step asks for is not cut: what it does not release would cost.
    if unclear and retry.attempts > Retry().attempts:
        names, unclear = [*names, *unclear], []
    written = [*early, _retrier(names, retry)]
    return [*written, _retrier(unclear, UNCLEAR)] if unclear else written


def _retrier(names: list[Json], retry: Retry) -> Json:
    return {
        "ErrorEquals": list(dict.fromkeys(names)),
        "IntervalSeconds": max(1, math.ceil(retry.interval_s)),
        "BackoffRate": retry.backoff_rate,
        "MaxAttempts": retry.attempts - 1,
        "MaxDelaySeconds": math.ceil(LONGEST_PAUSE_S),
        "JitterStrategy": "FULL",
    }


def _early(operation: Operation, retry: Retry) -> list[Json]:
    """Return the retrier of the errors that say that it is too early for a call."""
    unnamed = [p.code for p in retry.busy if not _by_name(p, operation)]
    if unnamed:
        raise UnsupportedError(
            f"Step Functions has no name for {', '.join(unnamed)} of {operation.name}"
        )
    if not retry.busy:
        return []
    return [
        {
            "ErrorEquals": [name for p in retry.busy for name in _names(p, operation)],
            "IntervalSeconds": max(1, math.ceil(retry.busy_interval_s)),
            "BackoffRate": 1,
            "MaxAttempts": retry.busy_attempts,
        }
    ]


def passing(operation: Operation) -> list[Json]:
    """Return the names of errors that pass, by their codes or by the statuses they come with."""
    prefix = service(operation.service).prefix
    codes = {code for row in PASSING for code in row.codes} | set(_declared(operation))
    named = sorted(
        c for c in codes if c not in _UNDECLARED and is_named(ErrorPattern(c), operation)
    )
    return [f"{prefix}.{code}Exception" for code in (*_UNDECLARED, *named)]


def _declared(operation: Operation) -> Iterator[str]:
    """Yield the errors to which an operation's model gives a status that passes.

    Elsewhere the status itself is at hand: 429 of ``ModelNotReadyException``, 502 of
    ``EC2UnexpectedException``.
    """
    model = operation_model(operation.service, operation.name)
    for shape in () if model is None else model.errors:
        error = shape.metadata.get("error", {})
        if re.match(_STATUSES, str(error.get("httpStatusCode", ""))):
            yield _base(ErrorPattern(shape.name))


def answers(step: Call) -> tuple[ErrorPattern, ...]:
    """Return the errors that are an answer to a call."""
    adopted = (step.adopt.exists,) if step.adopt is not None else ()
    refusals = step.fallback.refusals if step.fallback is not None else ()
    return (*adopted, *(recovery.error for recovery in step.recoveries), *refusals)


def by_cause(step: Call) -> tuple[ErrorPattern, ...]:
    """Return the errors of a call that pass, and that only their cause tells from others."""
    return tuple(p for p in step.retry.errors if not _by_name(p, step.operation))


def can_look(step: Call) -> bool:
    """Return whether a job can be asked for by its name, so that one in doubt can be followed."""
    until = step.until
    return until is not None and bool(until.absent) and step.retry.attempts > 1


def is_absent(step: Call) -> str:
    """Return the condition that the error of a poll says that nothing has the job's name."""
    patterns = () if step.until is None else step.until.absent
    words = "|".join(_literal(pattern.message or _base(pattern)) for pattern in patterns)
    return f"$contains({_NAME} & {_CAUSE}, /{words}/)"


def is_named(pattern: ErrorPattern, operation: Operation) -> bool:
    """Return whether an error comes under a name of its own."""
    known = service(operation.service).named_errors
    return known is None or not pattern.code or _base(pattern) in known


def caught_names(pattern: ErrorPattern, operation: Operation) -> list[str] | None:
    """Return the names that an error is caught by, if they alone tell it from others."""
    if not _by_name(pattern, operation):
        return None
    return _names(pattern, operation) if pattern.code else ["States.ALL"]


def names_of_answers(step: Call) -> list[Json]:
    """Return the names that a call's answers come under, if their messages then tell them apart."""
    patterns, operation = (*answers(step), *by_cause(step)), step.operation
    unnamed = all(p.message and not is_named(p, operation) for p in patterns)
    if not unnamed or len({_base(p) for p in patterns}) != 1:
        return []
    return [*_names(patterns[0], operation), *_generic_names(operation)]


def matches(pattern: ErrorPattern, operation: Operation, *, named: bool = False) -> str:
    """Return whether the error in a state's input is of a kind, in JSONata.

    ``named``: its name has led to the state, so that only its message is in question.
    """
    has_message = f"$contains({_CAUSE}, {quote(pattern.message)})"
    if named:
        return has_message
    base = re.escape(_base(pattern))
    if not is_named(pattern, operation) and pattern.message:
        ends = "|".join([base, *(re.escape(_base(ErrorPattern(n))) for n in _generic(operation))])
        test = f"$contains({_NAME}, /[.]({ends})(Exception)?$/)"
    else:
        # Some integrations put the code into the cause only.
        either = f"/([.]|Code: ){base}(Exception)?[^A-Za-z]/"
        test = f"$contains({_NAME} & ': ' & {_CAUSE}, {either})"
    return f"{test} and {has_message}" if pattern.message else test


def unclear(operation: Operation, patterns: tuple[ErrorPattern, ...]) -> Iterator[ErrorPattern]:
    """Yield the errors of an operation that Step Functions does not tell from others."""
    for pattern in patterns:
        if not is_named(pattern, operation) and not pattern.message:
            yield pattern


def _by_name(pattern: ErrorPattern, operation: Operation) -> bool:
    return is_named(pattern, operation) and not pattern.message


def _literal(text: str) -> str:
    """Return a regular expression for a text; a blank needs no backslash."""
    return re.escape(text).replace("\\ ", " ").replace("/", "\\/")


def _base(pattern: ErrorPattern) -> str:
    return pattern.code.removesuffix("Exception")


def _names(pattern: ErrorPattern, operation: Operation) -> list[str]:
    return [f"{service(operation.service).prefix}.{_base(pattern)}Exception"]


def _generic_names(operation: Operation) -> list[Json]:
    prefix = service(operation.service).prefix
    return [f"{prefix}.{end}" for end in _generic(operation)]


def _generic(operation: Operation) -> list[str]:
    prefix = service(operation.service).prefix
    names = [f"{prefix}Exception"]
    return [*names, f"Amazon{prefix}Exception"] if operation.service == "sagemaker" else names
