"""The JSON Schema of pipeline files, for editors and other programs.

Pydantic describes the models; forms that only files allow are added: stages as a mapping from
names, short forms of channels, and references wherever they are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import BaseModel

    from orchestration.stages.kinds import Kinds

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Schema = {"$ref": "#/$defs/Reference"}
_CONDITION: Schema = {"$ref": "#/$defs/Condition"}
_OPERAND: Schema = {"anyOf": [{"type": ["string", "number", "boolean"]}, _REFERENCE]}
_NAMED = (_REFERENCE, _CONDITION)
_FORMS = {
    "equal": "Whether two values are equal.",
    "not_equal": "Whether two values differ.",
    "less": "Whether the first value is less than the second.",
    "at_most": "Whether the first value is at most the second.",
    "greater": "Whether the first value is greater than the second.",
    "at_least": "Whether the first value is at least the second.",
    "in": "Whether a value is one of a list.",
    "all": "Whether all of these conditions hold.",
    "any": "Whether one of these conditions holds.",
    "not": "Whether this condition does not hold.",
    "ref": "An output of a stage: `train.model_artifacts`.",
    "parameter": "A parameter of the pipeline, by its name.",
    "first_of": "The first of these values that exists, for stages that may not have run.",
    "arn_name": "The name at the end of an ARN.",
    "time_text": "A time of the run, or one before it, as text.",
    "run": "The id of the run.",
    "each": "A value of the element that a stage with `for_each` runs for.",
    "outcome": "The way in which the run ended, for stages that run afterwards.",
    "join": "These texts and values, one after the other.",
}
"""The written forms of conditions and references."""


def pipeline_schema(kinds: Kinds) -> Schema:
    """Build the schema of a pipeline's YAML file, in draft 2020-12."""
    from pydantic.json_schema import models_json_schema

    from orchestration.expressions.conditions import condition_schema
    from orchestration.pipeline import Pipeline
    from orchestration.refs import json_schema
    from orchestration.stages import Stage

    stages = kinds.classes()
    models: list[type[BaseModel]] = [Pipeline, Stage, *stages.values()]
    places, generated = models_json_schema([(model, "validation") for model in models])
    names = {model: place["$ref"].rpartition("/")[2] for (model, _), place in places.items()}
    reference = json_schema()
    condition = condition_schema()
    generated = _mapped(generated, lambda s: _REFERENCE if s == reference else s)
    generated = _mapped(generated, lambda s: _CONDITION if s == condition else s)
    generated = _mapped(generated, _without_discriminator)
    definitions: dict[str, Schema] = generated["$defs"]
    definitions["Reference"] = _explained(_reference(reference))
    definitions["Condition"] = _explained(_condition(condition))
    inner = {each.__name__: each for model in models for each in _models(model)}
    inner |= {name: model for model, name in names.items()}
    for name, definition in definitions.items():
        _require_kind(definition)
        _describe(definition, inner.get(name))
    schema = definitions.pop(names[Pipeline])
    definitions.pop(names[Stage])  # Any of the kinds below stands for it.
    definition_of = {kind: names[stage] for kind, stage in stages.items()}
    _name_stages(schema, definitions, definition_of)
    _allow_defaults(schema, definitions, definition_of)
    return {
        "$schema": _DRAFT,
        **schema,
        "$defs": definitions,
        "title": "Pipeline of orchestration",
    }


def _reference(schema: Schema) -> Schema:
    whole = deepcopy(schema)
    for form in whole["oneOf"]:
        if "join" in form["properties"]:
            parts = {"anyOf": [{"type": "string"}, _REFERENCE]}
            form["properties"]["join"] = {"type": "array", "items": parts}
        elif "first_of" in form["properties"]:
            form["properties"]["first_of"]["items"] = _OPERAND
        elif "arn_name" in form["properties"]:
            form["properties"]["arn_name"] = _REFERENCE
        elif "time_text" in form["properties"]:
            fields = form["properties"]["time_text"]["properties"]
            fields["of"] = {"description": fields["of"]["description"], **_REFERENCE}
    whole["description"] = "A value that is known only during a run."
    return whole


def _explained(schema: Schema) -> Schema:
    """Describe each form of a condition or a reference, by its key."""
    for form in (schema, *schema.get("oneOf", ())):
        for key, property_ in form.get("properties", {}).items():
            form["properties"][key] = {"description": _FORMS[key], **property_}
    return schema


def _condition(schema: Schema) -> Schema:
    """Describe what stands inside of a condition."""
    inner = {"Condition": _CONDITION, "Operand": _OPERAND}

    def named(part: Schema) -> Schema:
        return inner[part["title"]] if part.keys() == {"title"} else part

    return cast(Schema, _mapped(deepcopy(schema), named))


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
        kind["description"] = definition.get("description", "").partition("\n")[0]
        definition["required"] = ["kind", *definition.get("required", [])]


def _name_stages(schema: Schema, definitions: dict[str, Schema], stages: Mapping[str, str]) -> None:
    """Describe stages as a list of named ones, or as a mapping from names to stages."""
    from orchestration.pipeline.afterwards.sections import SECTIONS

    properties = schema["properties"]
    name = definitions[next(iter(stages.values()))]["properties"]["name"]
    for stage in stages.values():
        definition = deepcopy(definitions[stage])
        definition["required"] = [field for field in definition["required"] if field != "name"]
        definitions[f"{stage}InMapping"] = definition
    mapped = {
        "propertyNames": {key: name[key] for key in ("pattern", "maxLength")},
        "additionalProperties": _by_kind(stages, "InMapping"),
        "minProperties": 1,
    }
    listed = {"items": _by_kind(stages, ""), "minItems": 1}
    for section in SECTIONS:
        old = properties[section]
        about = {key: old[key] for key in ("title", "description") if key in old}
        properties[section] = {**about, "type": ["object", "array"], **mapped, **listed}
    properties["role"]["default"] = {"parameter": "role"}


def _allow_defaults(
    schema: Schema, definitions: dict[str, Schema], stages: Mapping[str, str]
) -> None:
    """Describe ``defaults``; a stage lacks a required field only in a file that has none."""
    from orchestration.pipeline.afterwards.sections import SECTIONS
    from orchestration.pipeline.defaults.merging import DEFAULTS, FOR, OF_ONE

    required = {}
    fields: dict[str, Schema] = {FOR: {"type": "array", "items": {"type": "string"}, "minItems": 1}}
    fields[FOR]["description"] = "The stages that take these fields where they have none."
    for kind, stage in stages.items():
        # What stands in a field is checked in the stages that take it: here it may be a part.
        for name, property_ in definitions[stage]["properties"].items():
            fields.setdefault(name, {"description": property_.get("description", name)})
        definition = definitions[f"{stage}InMapping"]
        required[kind] = [field for field in definition["required"] if field != "kind"]
        for each, own in ((stage, ["name", "kind"]), (f"{stage}InMapping", ["kind"])):
            definitions[each]["required"] = own
    for name in OF_ONE:
        fields.pop(name)
    schema["properties"][DEFAULTS] = {
        "type": "array",
        "description": "Fields that several stages share; a stage's own value wins.",
        "items": {
            "type": "object",
            "properties": fields,
            "required": [FOR],
            "additionalProperties": False,
        },
    }
    definitions["WholeStage"] = {
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"required": needed},
            }
            for kind, needed in required.items()
            if needed
        ]
    }
    whole = {"$ref": "#/$defs/WholeStage"}
    about = {"description": "Stages with all that they need."}
    every = {each: {**about, "items": whole, "additionalProperties": whole} for each in SECTIONS}
    schema |= {"if": {"required": [DEFAULTS]}, "else": {"properties": every}}


def _by_kind(stages: Mapping[str, str], suffix: str) -> Schema:
    # Not oneOf, so that an editor reports problems of the stage that is meant.
    return {
        "type": "object",
        "properties": {"kind": {"enum": list(stages), "description": "The kind of the stage."}},
        "required": ["kind"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{stage}{suffix}"},
            }
            for kind, stage in stages.items()
        ],
    }


def _mapped(value: Any, change: Callable[[Schema], Schema]) -> Any:
    """Apply a change to every object in a schema, outermost first."""
    if isinstance(value, dict):
        changed = change(value)
        if changed in _NAMED:
            return dict(changed)
        return {key: _mapped(item, change) for key, item in changed.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value
