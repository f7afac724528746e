"""A call as JSON and back, for the arguments of operators and triggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from orchestration.expressions import Json, Tree
from orchestration.expressions.codec import decode, encode
from orchestration.graph import (
    Adopt,
    Alternative,
    Call,
    ErrorPattern,
    Fallback,
    Operation,
    Output,
    Recovery,
    Retry,
    Until,
)

_Object = Mapping[str, Any]


def encode_call(call: Call) -> dict[str, Json]:
    """A call without its request, which is an argument of its own (operators' ``config``)."""
    document: dict[str, Json] = {
        "service": call.operation.service,
        "operation": call.operation.name,
        "retry": _retry(call.retry),
    }
    if call.outputs:
        document["outputs"] = encode_outputs(call.outputs)
    if call.until is not None:
        document["until"] = _until(call.until)
    if call.adopt is not None:
        document["adopt"] = {
            "exists": _pattern(call.adopt.exists),
            "name_field": call.adopt.name_field,
        }
    if call.recoveries:
        document["recoveries"] = [
            {"error": _pattern(r.error), "outputs": dict(r.outputs)} for r in call.recoveries
        ]
    if call.fallback is not None:
        document["fallback"] = _fallback(call.fallback)
    return document


def decode_call(name: str, document: _Object, request: Mapping[str, Tree]) -> Call:
    """The call that :func:`encode_call` was given, with a request."""
    until, adopt = document.get("until"), document.get("adopt")
    fallback = document.get("fallback")
    return Call(
        name=name,
        operation=Operation(document["service"], document["operation"], request),
        outputs=decode_outputs(document.get("outputs", {})),
        until=None if until is None else _decoded_until(until),
        adopt=None
        if adopt is None
        else Adopt(exists=ErrorPattern(*adopt["exists"]), name_field=adopt["name_field"]),
        recoveries=tuple(
            Recovery(ErrorPattern(*r["error"]), r["outputs"])
            for r in document.get("recoveries", ())
        ),
        retry=_decoded_retry(document["retry"]),
        fallback=None if fallback is None else _decoded_fallback(fallback),
    )


def encode_outputs(outputs: Mapping[str, Output]) -> dict[str, Json]:
    """Outputs as JSON."""
    return {name: _output(output) for name, output in outputs.items()}


def decode_outputs(document: _Object) -> dict[str, Output]:
    """The outputs that :func:`encode_outputs` was given."""
    return {name: _decoded_output(output) for name, output in document.items()}


def _output(output: Output) -> Json:
    document: dict[str, Json] = {"path": list(output.path)}
    if output.kind != "any":
        document["kind"] = output.kind
    if output.columns:
        document["columns"] = list(output.columns)
    if output.optional:
        document["default"] = cast("Json", output.default)
    if output.parse:
        document["parse"] = True
    return document


def _decoded_output(document: _Object) -> Output:
    fields: dict[str, Any] = {**document, "path": tuple(document["path"])}
    fields["columns"] = tuple(document.get("columns", ()))
    return Output(**fields)


def _until(until: Until) -> Json:
    return {
        "poll": _operation(until.poll),
        "status": list(until.status),
        "success": sorted(until.success),
        "failure": sorted(until.failure),
        "reason": None if until.reason is None else list(until.reason),
        "interval_s": until.interval_s,
        "timeout_s": until.timeout_s,
        "gone": None if until.gone is None else _pattern(until.gone),
        "stop": None if until.stop is None else _operation(until.stop),
        "outputs": encode_outputs(until.outputs),
    }


def _decoded_until(document: _Object) -> Until:
    reason, gone, stop = document["reason"], document["gone"], document["stop"]
    return Until(
        poll=_decoded_operation(document["poll"]),
        status=tuple(document["status"]),
        success=frozenset(document["success"]),
        failure=frozenset(document["failure"]),
        reason=None if reason is None else tuple(reason),
        interval_s=document["interval_s"],
        timeout_s=document["timeout_s"],
        gone=None if gone is None else ErrorPattern(*gone),
        stop=None if stop is None else _decoded_operation(stop),
        outputs=decode_outputs(document["outputs"]),
    )


def _fallback(fallback: Fallback) -> Json:
    return {
        "label": encode(fallback.label),
        "alternatives": [
            {
                "label": encode(other.label),
                "operation": _operation(other.operation),
                "poll": _operation(other.poll),
                "stop": None if other.stop is None else _operation(other.stop),
            }
            for other in fallback.alternatives
        ],
        "reasons": list(fallback.reasons),
        "refusals": [_pattern(pattern) for pattern in fallback.refusals],
        "absent": [_pattern(pattern) for pattern in fallback.absent],
    }


def _decoded_fallback(document: _Object) -> Fallback:
    return Fallback(
        label=decode(document["label"]),
        alternatives=tuple(
            Alternative(
                label=decode(other["label"]),
                operation=_decoded_operation(other["operation"]),
                poll=_decoded_operation(other["poll"]),
                stop=None if other["stop"] is None else _decoded_operation(other["stop"]),
            )
            for other in document["alternatives"]
        ),
        reasons=tuple(document["reasons"]),
        refusals=tuple(ErrorPattern(*pattern) for pattern in document["refusals"]),
        absent=tuple(ErrorPattern(*pattern) for pattern in document["absent"]),
    )


def _operation(operation: Operation) -> Json:
    return {
        "service": operation.service,
        "operation": operation.name,
        "request": encode(operation.request),
    }


def _decoded_operation(document: _Object) -> Operation:
    request = cast("Mapping[str, Tree]", decode(document["request"]))
    return Operation(document["service"], document["operation"], request)


def _retry(retry: Retry) -> Json:
    return {
        "attempts": retry.attempts,
        "interval_s": retry.interval_s,
        "backoff_rate": retry.backoff_rate,
        "errors": [_pattern(error) for error in retry.errors],
    }


def _decoded_retry(document: _Object) -> Retry:
    errors = tuple(ErrorPattern(*error) for error in document["errors"])
    return Retry(**{**document, "errors": errors})


def _pattern(pattern: ErrorPattern) -> Sequence[Json]:
    return [pattern.code, pattern.message]
