"""Steps that make a model for one other step, as parts of the stage that uses it.

A stage makes its model, and a deployment its configuration, too: they are told apart only where
another step reads them, or waits for them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestration.importing.steps.step import Step

_LINKS: Final = ("ModelName", "EndpointConfigName")
"""The fields by which the requests of one stage name each other."""
_VARIANTS: Final = "ProductionVariants"
_SHADOWS: Final = "ShadowProductionVariants"
_WEIGHT: Final = "InitialVariantWeight"
"""Means nothing where there is one variant."""


def apart(stage: str) -> str:
    """Return the mark of a stage that can't say what its parts do."""
    return f"{stage} apart"


def folded(steps: Sequence[Step], marks: Collection[str]) -> list[Step]:
    """Return steps, those that only make something for one other as parts of that.

    ``marks`` holds the stages that are to have none.
    """
    made = {step.name: step for step in steps}
    for step in steps:
        parts = () if apart(step.stage) in marks else _parts(step, steps)
        if parts:
            made[step.name] = _joined(step, parts)
            for part in parts:
                del made[part.name]
    return list(made.values())


def _parts(step: Step, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps that only make something for a step: the first of them first."""
    match step.kind:
        case "Transform":
            parts = _made_for(step.arguments, "Model", "ModelName", steps)
        case "Endpoint":
            parts = _made_for(step.arguments, "EndpointConfig", "EndpointConfigName", steps)
            variants = parts[0].arguments.get("ProductionVariants") if parts else None
            if not isinstance(variants, list) or len(variants) != 1:
                return ()
            models = _made_for(variants[0], "Model", "ModelName", steps)
            parts = (*models, *parts) if models else ()
        case _:
            return ()
    together = {step.name, *(part.name for part in parts)}
    others = [other for other in steps if other.name not in together]
    left = [_unlinked(each.arguments) for each in (step, *parts)]
    is_alone = all(
        part.branches == step.branches
        and not _reads(left, part)
        and not any(_needs(other, part) for other in others)
        for part in parts
    )
    return parts if is_alone else ()


def _made_for(request: Any, kind: str, field: str, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the step of a kind whose result a field of a request names."""
    named = request.get(field) if isinstance(request, dict) else None
    return tuple(s for s in steps if s.kind == kind and named == {"Get": f"Steps.{s.name}.{field}"})


def _needs(step: Step, part: Step) -> bool:
    read = [step.given, *(branch.conditions for branch in step.branches)]
    return part.name in step.after or _reads(read, part)


def _reads(value: Any, part: Step) -> bool:
    return f'"Steps.{part.name}.' in json.dumps(value, default=str)


def _joined(step: Step, parts: tuple[Step, ...]) -> Step:
    """Return a step with its parts, which it needs no longer wait for."""
    own = {part.name for part in parts}
    waits = [name for each in (*parts, step) for name in each.given.get("DependsOn", ())]
    after = [name for name in dict.fromkeys(waits) if name not in own]
    return replace(_alone(step, DependsOn=after), parts=tuple(_alone(part) for part in parts))


def _alone(step: Step, **more: Any) -> Step:
    """Return a step whose request names none of the others of its stage."""
    return replace(step, given={**step.given, "Arguments": _unlinked(step.arguments), **more})


def _unlinked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request without the names of what the others of its stage make, and of its own."""
    return _of_variants(_without(request, _LINKS), ("ModelName",))


def alike(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return requests of a step with parts, or of one of those, and of its stage to compare."""
    named = () if "EndpointName" in theirs else ("EndpointName",)
    meaningless = () if _SHADOWS in theirs else (_WEIGHT,)
    return (
        _of_variants(theirs, meaningless),
        _of_variants(_without(_unlinked(ours), named), meaningless),
    )


def _of_variants(request: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return a request whose variants lack some fields."""
    variants = request.get(_VARIANTS)
    if not isinstance(variants, list):
        return dict(request)
    lacking = [_without(each, names) if isinstance(each, dict) else each for each in variants]
    return {**request, _VARIANTS: lacking}


def _without(fields: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {key: item for key, item in fields.items() if key not in names}
