"""Pydantic's errors in the words of a pipeline file, with paths into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from orchestration import phrases
from orchestration.errors import Problem, meant, misspelt, near
from orchestration.pipeline.afterwards.sections import SECTIONS
from orchestration.pipeline.description import PIPELINE_NAME, REGION, Description
from orchestration.pipeline.documentation import documented
from orchestration.refs import STAGE_NAME
from orchestration.stages import Stage
from orchestration.stages.kinds import Kinds

if TYPE_CHECKING:
    from pydantic import ValidationError

Location = tuple[str | int, ...]

_PATTERNS = {
    REGION: "the name of an AWS region: us-west-2",
    PIPELINE_NAME: "lower-case letters, digits and single hyphens, a letter first",
    f"^{STAGE_NAME.pattern}$": "lower-case letters, digits and single underscores, a letter first",
}
_STAGES = "a mapping from names to stages, or a list"


def from_validation(error: ValidationError, data: Mapping[str, Any], kinds: Kinds) -> list[Problem]:
    """Everything that Pydantic found wrong. ``data`` has its stages as a list of named ones."""
    models = _Models(data, kinds)
    messages: dict[tuple[str | None, str], list[str]] = {}
    items = error.errors(include_url=False, include_context=True)
    there = {
        (*item["loc"][:-1], misspelt(str(item["loc"][-1]), models.keys(item["loc"][:-1])))
        for item in items
        if item["type"] == "extra_forbidden"
    }
    for item in items:
        value = item["input"]
        if item["type"] == "missing" and item["loc"] in there:
            continue  # It is there, under a name that is reported.
        if item["type"] == "too_short" and len(value) >= item["ctx"]["min_length"]:
            continue  # Entries that are wrong themselves are not counted; each is reported.
        place = _place(item["loc"], data, missing=item["type"] == "missing")
        messages.setdefault(place, []).append(_message(item, models))
    return [
        Problem(field, "; or ".join(dict.fromkeys(texts)), stage=stage)
        for (stage, field), texts in messages.items()
    ]


def _place(location: Location, data: Mapping[str, Any], *, missing: bool) -> tuple[str | None, str]:
    """Stage and field of a location, without the members of unions that Pydantic names."""
    stage, field = None, ""
    here: Any = data
    for position, part in enumerate(location):
        is_entry = isinstance(part, int) and isinstance(here, list | tuple) and part < len(here)
        if is_entry:
            here = here[part]
            if stage is None and field in SECTIONS and (name := _name(here)) is not None:
                stage, field = name, ""
            else:
                field += f"[{part}]"
        elif isinstance(here, Mapping) and part in here:
            here = here[part]
            field += f".{part}" if field else str(part)
        elif missing and position == len(location) - 1:
            field += f".{part}" if field else str(part)
    return stage, field


def _name(stage: object) -> str | None:
    name = stage.get("name") if isinstance(stage, Mapping) else getattr(stage, "name", None)
    return name if isinstance(name, str) else None


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models anywhere in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


@dataclass(frozen=True, slots=True)
class _Models:
    """The models that a pipeline's data is read by."""

    data: Mapping[str, Any]
    kinds: Kinds

    def at(self, location: Location) -> tuple[type[BaseModel], ...]:
        """Return the models that may stand at a location."""
        models: tuple[type[BaseModel], ...] = (Description,)
        for position, part in enumerate(location):
            if position == 1 and location[0] in SECTIONS:
                models = self._stage(str(location[0]), part)
                continue
            fields = [m.model_fields[str(part)] for m in models if part in m.model_fields]
            if fields:
                models = tuple(model for f in fields for model in models_in(f.annotation))
            else:
                models = tuple(m for m in models if _kind(m) == part) or models
        return models

    def _stage(self, section: str, index: str | int) -> tuple[type[BaseModel], ...]:
        stage = self.data[section][index]
        name = stage.get("kind") if isinstance(stage, Mapping) else None
        kind = self.kinds.get(name) if isinstance(name, str) else None
        return () if kind is None else (kind,)

    def keys(self, location: Location) -> list[str]:
        """Return the fields that may stand at a location."""
        return sorted({name for model in self.at(location) for name in model.model_fields})

    def elsewhere(self, location: Location) -> str:
        """Return the place that an unknown field belongs to, or why a stage has none."""
        *parents, name = location
        stages = [model for model in self.at(tuple(parents)) if issubclass(model, Stage)]
        if not stages and (close := meant(str(name), self.keys(tuple(parents)))):
            return close
        if around := self._around(location):
            return around
        for model in stages:
            if (reason := model.lacking.get(str(name))) is not None:
                return f" here: {reason}"
        places = dict.fromkeys(
            f"{field}.{name}{_of_kind(inner)}"
            for model in stages
            for field, content in model.model_fields.items()
            for inner in models_in(content.annotation)
            if name in inner.model_fields
        )
        return f" here; there is {', '.join(list(places)[:3])}" if places else ""

    def _around(self, location: Location) -> str:
        """Return the way out where an object around has the field, but for its name."""
        *parents, name = location
        for depth in reversed(range(len(parents))):
            beside = parents[depth]
            if (depth == 1 and parents[0] in SECTIONS) or name == "name":
                continue
            if not any(name in model.model_fields for model in self.at(tuple(parents[:depth]))):
                continue
            if depth == 0:
                return f"; it is a field of the whole pipeline: write {name} beside stages"
            return f"; it belongs to what is around: write {name} beside {beside}"
        return ""

    def purpose(self, location: Location) -> str:
        """Return the beginning of a field's documentation."""
        *parents, name = location
        for model in self.at(tuple(parents)):
            if (text := documented(model).get(str(name))) is not None:
                first = text.split("\n\n")[0].split(". ")[0]
                return " ".join(first.replace("``", "").rstrip(".").split())
        return ""


def _kind(model: type[BaseModel]) -> object:
    return model.model_fields["kind"].default if "kind" in model.model_fields else None


def _of_kind(model: type[BaseModel]) -> str:
    kind = _kind(model)
    return "" if kind is None else f" (of kind {kind})"


def _message(item: Any, models: _Models) -> str:
    kind, context = str(item["type"]), item.get("ctx", {})
    match kind:
        case "extra_forbidden":
            name = str(item["loc"][-1])
            elsewhere = models.elsewhere(item["loc"])
            return f"is unknown{elsewhere or near(name, models.keys(item['loc'][:-1]))}"
        case "missing":
            purpose = models.purpose(item["loc"])
            return f"is required: {purpose}" if purpose else "is required"
        case "union_tag_not_found":
            kinds = (str(_kind(model)) for model in models.at(item["loc"]))
            misspelt = _misspelt(item["input"], models.keys(item["loc"]))
            return f"has no kind; give it one of kind: {', '.join(dict.fromkeys(kinds))}{misspelt}"
        case "union_tag_invalid":
            kinds = (str(_kind(model)) for model in models.at(item["loc"]))
            return f"there is no kind {context['tag']!r}{near(str(context['tag']), kinds)}"
    if item["loc"][-1] in SECTIONS:
        return phrase(item, expected=_STAGES)
    return phrase(item, keys=models.keys(item["loc"]) if kind.startswith("model") else ())


def _misspelt(value: object, known: Sequence[str]) -> str:
    """Return the keys of a mapping that are unknown and close to one that is known."""
    unknown = [str(key) for key in value if key not in known] if isinstance(value, Mapping) else []
    close = ((key, meant(key, known)) for key in unknown)
    return "".join(f"; {key} is unknown{hint}" for key, hint in close if hint)


def phrase(item: Any, *, expected: str | None = None, keys: Sequence[str] = ()) -> str:
    """Say an error of Pydantic's about a pipeline in the words of this package, without its place.

    ``expected`` says of what kind a value would be right, ``keys`` those of a mapping.
    """
    if item["type"] == "string_pattern_mismatch":
        pattern = item["ctx"]["pattern"]
        words = _PATTERNS.get(pattern, f"text that matches {pattern}")
        return f"expected {words}, got {phrases.shown(item['input'])}"
    return phrases.phrase(item, expected=expected, keys=keys)
