"""The steps around several variants of an endpoint: what they serve, and what an update keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from orchestration.expressions import All, Any, Compare, Function, Result, Tree, apply, join
from orchestration.graph import Call, Choose, Graph, Operation, Output, Require, Step
from orchestration.refs import Expression
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.sharing import kept

DIFFER: Final = "VariantsDiffer"
"""The error of a guarded update of an endpoint that has other variants."""
MISSING: Final = "VariantMissing"
"""The error of an update that keeps the model of a variant which the endpoint lacks."""
_NAME: Final = "VariantName"
_COLUMNS: Final = (_NAME, "ModelName")


def found(made: Made, after: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps that find what the variants serve, where that is asked.

    They follow the first question about the endpoint, which has one answer over all attempts of a
    run: where a deployment is under way, what served before it.
    """
    stage = made.stage
    if not _asked(stage):
        return ()
    steps: list[Step] = [_served(made, after)]
    for number, name in kept(stage):
        own = _rows_of(made, name)
        steps.append(
            Choose(
                name=f"{stage.name}.kept_{number}",
                condition=Compare("eq", apply(Function.COUNT, own), 0),
                then=Graph(),
                otherwise=Graph(),
                collect={"model": made.model_name},
                absent={"model": apply(Function.LISTED, own, "ModelName")},
                after=(steps[-1].name,),
            )
        )
    return tuple(steps)


def required(made: Made, after: tuple[str, ...]) -> tuple[Step, ...]:
    """Return what the variants of an endpoint that serves must be, before anything is made."""
    if not _asked(made.stage):
        return ()
    return ((_equal if made.stage.update.is_guarded else _known)(made, after),)


def names(made: Made) -> list[Tree]:
    """Return the names of all variants."""
    return [*made.stage.variants, made.variant]


def retaining(made: Made, targets: Result) -> dict[str, Tree]:
    """Return what an update keeps of the endpoint: numbers of instances that are scaled.

    Not its weights, and not what it captures: these follow the configuration.
    """
    scaled = Compare("gt", apply(Function.COUNT, targets), 0)
    excluded = [
        *(["DesiredWeight"] if made.stage.variants else []),
        *(["DataCaptureConfig"] if made.stage.data_capture is not None else []),
    ]
    request: dict[str, Tree] = {"RetainAllVariantProperties": scaled}
    if excluded:
        # Assumed to be without effect where nothing is retained, as botocore's text suggests.
        request["ExcludeRetainedVariantProperties"] = [
            {"VariantPropertyType": kind} for kind in excluded
        ]
    return request


def _served(made: Made, after: tuple[str, ...]) -> Choose:
    stage = made.stage
    config = Result(made.first_asked, "config")
    described = Call(
        name=f"{stage.name}.configured",
        operation=Operation("sagemaker", "DescribeEndpointConfig", {"EndpointConfigName": config}),
        outputs={
            "variants": Output(
                ("ProductionVariants",), kind="list", columns=_COLUMNS, texts=_COLUMNS
            )
        },
    )
    return Choose(
        name=f"{stage.name}.serves",
        condition=Compare("ne", config, ""),
        then=Graph((described,)),
        otherwise=Graph(),
        collect={"variants": Result(described.name, "variants")},
        absent={"variants": []},
        after=after,
    )


def _asked(stage: DeploymentFields) -> bool:
    return bool(stage.variants) and bool(kept(stage) or stage.update.is_guarded)


def _rows(made: Made) -> Result:
    return Result(f"{made.stage.name}.serves", "variants")


def _rows_of(made: Made, name: Tree) -> Expression[object]:
    return apply(Function.WHERE, _rows(made), _NAME, "eq", name)


def _present(made: Made, wanted: Iterable[Tree]) -> list[Expression[bool]]:
    counts = [apply(Function.COUNT, _rows_of(made, name)) for name in wanted]
    return [Compare("eq", count, 1) for count in counts]


def _known(made: Made, after: tuple[str, ...]) -> Require:
    """Require that the endpoint has the variants whose models stay, or none yet."""
    wanted = [name for _, name in kept(made.stage)]
    none = Compare("eq", apply(Function.COUNT, _rows(made)), 0)
    return Require(
        name=f"{made.stage.name}.known_variants",
        condition=Any((none, All(tuple(_present(made, wanted))))),
        error=MISSING,
        cause=join(
            *_has(made),
            f"], and the stage keeps {', '.join(wanted)}: keep those that are there, or give the "
            "model_name of one that is new",
        ),
        after=after,
    )


def _has(made: Made) -> tuple[str | Expression[object], ...]:
    listed = apply(Function.LISTED, _rows(made), _NAME)
    return "endpoint ", made.endpoint, " has the variants [", listed


def _equal(made: Made, after: tuple[str, ...]) -> Require:
    """Require that the endpoint has these variants, or none yet."""
    wanted, rows = names(made), _rows(made)
    whole = Compare("eq", apply(Function.COUNT, rows), len(wanted))
    none = Compare("eq", apply(Function.COUNT, rows), 0)
    return Require(
        name=f"{made.stage.name}.same_variants",
        condition=Any((none, All((whole, *_present(made, wanted))))),
        error=DIFFER,
        cause=join(
            *_has(made),
            f"], and the stage {', '.join(map(str, wanted))}: SageMaker moves traffic in parts "
            "only between equal ones; deploy once with traffic: all_at_once, without alarms",
        ),
        after=after,
    )
