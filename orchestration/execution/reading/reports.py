"""Reports: JSON objects in S3 that jobs have written, and what is wrong with them.

Every driver looks at a report in the same order, so that it ends the same everywhere: whether it
exists, whether it is a JSON object in UTF-8, and then each value that the step takes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from orchestration.errors import RunError
from orchestration.execution import wording
from orchestration.execution.effects import Performance, Request, ServiceError
from orchestration.execution.outputs import MISSING, at, fitted
from orchestration.execution.sending import sent
from orchestration.expressions import Json
from orchestration.graph import MAX_REPORT_BYTES, Output, Read, Retry

RANGE: Final = f"bytes=0-{MAX_REPORT_BYTES - 1}"
"""The part of a report that is read: a larger report comes cut off, and is no JSON."""
NOT_FINITE: Final = -1e308
"""Stands for NaN and for both infinities, which JSON does not have: a number, so that nothing
breaks where the text of a string looks like one of them."""
_ABSENT: Final = ("NoSuchKey", "404")
UNLISTED: Final = "s3:ListBucket"
"""The action that S3's refusal names where there is no such object, and the caller may not list the
bucket: https://repost.aws/knowledge-center/s3-troubleshoot-403. The wording of that refusal is
recalled, not verified."""
_EMPTY: Final = ("InvalidRange", "416")
_LARGEST_EXACT: Final = 2**53
_UNREADABLE_CHARACTER: Final = "\ufffd"


def read_request(uri: str) -> Request:
    """Return the request for a report."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return Request("s3", "GetObject", {"Bucket": bucket, "Key": key, "Range": RANGE})


def read(step: Read, uri: str) -> Performance[dict[str, Json]]:
    """Read a report and take the step's outputs from it.

    Raises :class:`~orchestration.errors.RunError` where the report, or a value in it, is missing or
    wrong, and :class:`~orchestration.execution.effects.ServiceError` where S3 refuses to tell.
    """
    report = _Report(step.name, uri)
    try:
        response = yield from sent(read_request(uri), Retry())
    except ServiceError as error:
        if error.code in _ABSENT or UNLISTED in error.message:
            raise report.error(wording.REPORT_MISSING, wording.ABSENT_REPORT) from error
        if error.code in _EMPTY:
            raise report.error(wording.REPORT_NOT_USABLE, wording.UNUSABLE_REPORT) from error
        raise
    document = report.document(cast("Mapping[str, Any]", response))
    return {name: report.value(output, document) for name, output in step.outputs.items()}


@dataclass(frozen=True, slots=True)
class _Report:
    step: str
    uri: str

    def error(self, name: str, text: str, **holes: object) -> RunError:
        problem = wording.filled(text, **holes)
        cause = wording.filled(wording.BROKEN_REPORT, step=self.step, uri=self.uri, problem=problem)
        return RunError(name, cause)

    def document(self, response: Mapping[str, Any]) -> Mapping[str, Json]:
        body = str(response["Body"])
        try:
            document = json.loads(
                body, parse_constant=_not_finite, parse_float=_float, parse_int=_integer
            )
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, Mapping) or _UNREADABLE_CHARACTER in body:
            raise self.error(wording.REPORT_NOT_USABLE, wording.UNUSABLE_REPORT)
        return document

    def value(self, output: Output, document: Mapping[str, Json]) -> Json:
        value = at(cast(Json, document), (*output.path, *output.inside))
        number = output.kind == "number"
        where = {"path": output.place, "kind": output.kind}
        if value is MISSING and output.optional:
            return cast(Json, output.default)
        if value is MISSING:
            name = wording.METRIC_MISSING if number else wording.MISSING_OUTPUT
            raise self.error(name, wording.ABSENT_VALUE, **where)
        if number and value == NOT_FINITE:
            if output.not_finite == "null":
                return None
            raise self.error(wording.METRIC_NOT_FINITE, wording.NOT_FINITE_VALUE, **where)
        try:
            return fitted(output, cast(Json, value))
        except ValueError as error:
            name = wording.METRIC_NOT_NUMBER if number else wording.WRONG_OUTPUT
            raise self.error(name, wording.WRONG_VALUE, **where) from error


def _not_finite(_: str) -> float:
    return NOT_FINITE


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is larger than any number of 64 bits")
    return value


def _integer(text: str) -> float:
    """Return an integer as JSONata reads it: a number of 64 bits."""
    value = _float(text)
    return int(value) if abs(value) <= _LARGEST_EXACT else value
