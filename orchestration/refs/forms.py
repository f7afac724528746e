"""The written forms of references in YAML: their keys, their names and their schema."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

from orchestration.refs import times

WHOLE: Final = "item"
"""The word for an element itself, where it is no object: ``{each: item}``."""
STAGE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""Names of stages, steps, outputs and parameters: snake case, no double underscore, so that they
can be joined without collisions in Step Functions states, JSONata variables and Airflow task
ids."""

OutcomeField: TypeAlias = Literal["state", "error", "cause"]
OUTCOME_FIELDS: Final[tuple[OutcomeField, ...]] = ("state", "error", "cause")

FORMS: Final = (
    *("ref", "parameter", "run", "join", "first_of", "arn_name", "time_text", "each", "outcome"),
)
"""The keys of references in YAML."""
EXAMPLES: Final = (
    "{ref: <stage>.<output>}, {parameter: <name>}, {run: id}, {join: [<text or reference>, …]}, "
    "{first_of: [<reference>, …]}, {arn_name: <reference>}, {time_text: {of: <reference>, format: "
    '"%Y-%m-%d"}} or, where for_each is, {each: item}'
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
            form("each", {"type": "string", "pattern": f"^{name}$"}),
            form("outcome", {"enum": list(OUTCOME_FIELDS)}),
            form("join", {"type": "array", "items": {"type": ["string", "object"]}}),
            form("first_of", {"type": "array", "minItems": 2}),
            form("arn_name", {"type": "object"}),
            form("time_text", times.schema({"type": "object"})),
        ],
    }
