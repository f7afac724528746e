"""How users write expressions in YAML, and how Pydantic reads them.

One mapping with one key: ``{ref: train.checkpoints}``, ``{parameter: bucket}``, ``{run: id}``,
``{join: ["s3://", {parameter: bucket}, "/digits"]}``. Text is never searched for references.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from orchestration.errors import near
from orchestration.expressions.nodes import join, parameter, run_id
from orchestration.refs import STAGE_NAME, Expression, Ref

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

_FORMS = (
    "{ref: <stage>.<output>}, {parameter: <name>}, {run: id} or {join: [<text or reference>, …]}"
)


def parse(value: object) -> Expression[object]:
    """An expression from its written form; a ``ValueError`` says what is wrong."""
    if isinstance(value, Expression):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"{value!r} is no reference; write one of {_FORMS}")
    [(form, argument)] = value.items()
    match form, argument:
        case "ref", str():
            return _ref(argument)
        case "parameter", str():
            return parameter(argument)
        case "run", "id":
            return run_id()
        case "join", list() | tuple():
            return join(*(part if isinstance(part, str) else parse(part) for part in argument))
    forms = ("ref", "parameter", "run", "join")
    if form not in forms and get_close_matches(str(form), forms, n=1):
        raise ValueError(f"{dict(value)!r} is no reference{near(str(form), forms)}")
    raise ValueError(f"{dict(value)!r} is no reference; write one of {_FORMS}")


def _ref(text: str) -> Ref[object]:
    stage, dot, output = text.partition(".")
    if not dot or not STAGE_NAME.fullmatch(stage) or not STAGE_NAME.fullmatch(output):
        raise ValueError(f"{text!r} is no reference; write {{ref: <stage>.<output>}}")
    return Ref(stage, output)


def written(node: Expression[object]) -> object:
    """An expression as a user would write it in YAML, where the syntax has a form for it."""
    from orchestration.expressions.nodes import Join, Parameter, Run

    match node:
        case Ref(stage, output):
            return {"ref": f"{stage}.{output}"}
        case Parameter(name):
            return {"parameter": name}
        case Run():
            return {"run": "id"}
        case Join(parts):
            return {"join": [p if isinstance(p, str) else written(p) for p in parts]}
        case _:
            raise ValueError(f"{node!r} has no written form")


def core_schema() -> CoreSchema:
    """How Pydantic reads and writes an expression."""
    from pydantic_core import core_schema as cs

    return cs.no_info_plain_validator_function(
        parse, serialization=cs.plain_serializer_function_ser_schema(written)
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the written forms."""

    def form(key: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {key: schema},
            "required": [key],
            "additionalProperties": False,
        }

    name = STAGE_NAME.pattern
    return {
        "title": "Reference",
        "oneOf": [
            form("ref", {"type": "string", "pattern": rf"^{name}\.{name}$"}),
            form("parameter", {"type": "string", "pattern": f"^{name}$"}),
            form("run", {"const": "id"}),
            form("join", {"type": "array", "items": {"type": ["string", "object"]}}),
        ],
    }
