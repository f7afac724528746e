"""The JSON Schema of pipeline files, for editors and other programs.

Pydantic describes the models; forms that only files allow are added: stages as a mapping from
names, short forms of channels, and references wherever they are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]

_STAGES = ("DataStaging", "TrainingJob", "CheckpointEvaluation", "Deployment")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Schema = {"$ref": "#/$defs/Reference"}


def pipeline_schema() -> Schema:
    """Build the schema of a pipeline's YAML file, in draft 2020-12."""
    from orchestration.pipeline import Pipeline
    from orchestration.refs import json_schema

    reference = json_schema()
    schema = _mapped(Pipeline.model_json_schema(), lambda s: _REFERENCE if s == reference else s)
    schema = _mapped(schema, _without_discriminator)
    definitions: dict[str, Schema] = schema["$defs"]
    definitions["Reference"] = _reference(reference)
    models = {model.__name__: model for model in _models(Pipeline)}
    for name, definition in {**definitions, "Pipeline": schema}.items():
        _require_kind(definition)
        _describe(definition, models.get(name))
    _shorten_channels(definitions["TrainingJob"])
    _name_stages(schema, definitions)
    return {"$schema": _DRAFT, **schema, "title": "Pipeline of orchestration"}


def _reference(schema: Schema) -> Schema:
    whole = deepcopy(schema)
    for form in whole["oneOf"]:
        if "join" in form["properties"]:
            parts = {"anyOf": [{"type": "string"}, _REFERENCE]}
            form["properties"]["join"] = {"type": "array", "items": parts}
    whole["description"] = "A value that is known only during a run."
    return whole


def _without_discriminator(schema: Schema) -> Schema:
    # A word of OpenAPI, which JSON Schema does not know.
    return {key: value for key, value in schema.items() if key != "discriminator"}


def _models(model: type[BaseModel]) -> set[type[BaseModel]]:
    """A model, and all models in its fields."""
    from orchestration.pipeline.wording import models_in

    models, new = {model}, [model]
    while new:
        fields = new.pop().model_fields.values()
        inner = {each for field in fields for each in models_in(field.annotation)} - models
        models |= inner
        new += inner
    return models


def _describe(definition: Schema, model: type[BaseModel] | None) -> None:
    """Add the docstrings of fields to a definition."""
    from orchestration.pipeline.documentation import documented

    descriptions = {} if model is None else documented(model)
    for name, property_ in definition.get("properties", {}).items():
        if name in descriptions:
            property_.setdefault("description", descriptions[name])


def _require_kind(definition: Schema) -> None:
    """Require the kind of union members, which a file must always give."""
    kind = definition.get("properties", {}).get("kind", {})
    if "const" in kind:
        definition["required"] = ["kind", *definition.get("required", [])]


def _name_stages(schema: Schema, definitions: dict[str, Schema]) -> None:
    """Describe stages as a list of named ones, or as a mapping from names to stages."""
    properties = schema["properties"]
    name = definitions["DataStaging"]["properties"]["name"]
    about = {k: v for k, v in properties["stages"].items() if k in ("title", "description")}
    for stage in _STAGES:
        definition = deepcopy(definitions[stage])
        definition["required"] = [field for field in definition["required"] if field != "name"]
        definitions[f"{stage}InMapping"] = definition
    mapped = {
        "propertyNames": {key: name[key] for key in ("pattern", "maxLength")},
        "additionalProperties": _by_kind(definitions, "InMapping"),
        "minProperties": 1,
    }
    listed = {"items": _by_kind(definitions, ""), "minItems": 1}
    properties["stages"] = {**about, "type": ["object", "array"], **mapped, **listed}
    properties["role"]["default"] = {"parameter": "role"}


def _by_kind(definitions: dict[str, Schema], suffix: str) -> Schema:
    # Not oneOf, so that an editor reports problems of the stage that is meant.
    kinds = {definitions[stage]["properties"]["kind"]["const"]: stage for stage in _STAGES}
    return {
        "type": "object",
        "properties": {"kind": {"enum": list(kinds)}},
        "required": ["kind"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{stage}{suffix}"},
            }
            for kind, stage in kinds.items()
        ],
    }


def _shorten_channels(training_job: Schema) -> None:
    channels = training_job["properties"]["channels"]
    whole = channels["additionalProperties"]
    channels["additionalProperties"] = {"anyOf": [{"type": "string"}, _REFERENCE, whole]}


def _mapped(value: Any, change: Callable[[Schema], Schema]) -> Any:
    """Apply a change to every object in a schema, outermost first."""
    if isinstance(value, dict):
        changed = change(value)
        if changed is _REFERENCE:
            return dict(_REFERENCE)
        return {key: _mapped(item, change) for key, item in changed.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value
