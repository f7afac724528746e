"""The steps around several variants of an endpoint: what they serve, and what an update keeps."""

from __future__ import annotations

from typing import Final

from orchestration.expressions import All, Any, Compare, Function, Result, Tree, apply, join
from orchestration.graph import Call, Choose, Graph, Operation, Output, Require, Step
from orchestration.refs import Expression
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.sharing import guarded, kept

DIFFER: Final = "VariantsDiffer"
"""The error of a guarded update of an endpoint that has other variants."""
_NAME: Final = "VariantName"
_COLUMNS: Final = (_NAME, "ModelName")


def steps(made: Made, after: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps that find what the variants serve, where that is asked."""
    stage = made.stage
    if not stage.variants or not (kept(stage) or guarded(stage)):
        return ()
    served = _served(made, after)
    found: list[Step] = [served]
    rows = Result(served.name, "variants")
    if guarded(stage):
        found.append(_equal(made, rows, (served.name,)))
    for number, name in kept(stage):
        own = apply(Function.WHERE, rows, _NAME, "eq", name)
        found.append(
            Choose(
                name=f"{stage.name}.kept_{number}",
                condition=Compare("eq", apply(Function.COUNT, own), 0),
                then=Graph(),
                otherwise=Graph(),
                collect={"model": made.model_name},
                absent={"model": apply(Function.LISTED, own, "ModelName")},
                after=(found[-1].name,),
            )
        )
    return tuple(found)


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
    config = Result(f"{stage.name}.look", "config")
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


def _equal(made: Made, rows: Expression[object], after: tuple[str, ...]) -> Require:
    """Require that the endpoint has these variants, or none yet."""
    wanted = names(made)
    counts = [
        Compare("eq", apply(Function.COUNT, apply(Function.WHERE, rows, _NAME, "eq", name)), 1)
        for name in wanted
    ]
    whole = Compare("eq", apply(Function.COUNT, rows), len(wanted))
    none = Compare("eq", apply(Function.COUNT, rows), 0)
    return Require(
        name=f"{made.stage.name}.same_variants",
        condition=Any((none, All((whole, *counts)))),
        error=DIFFER,
        cause=join(
            *(
                "endpoint ",
                made.endpoint,
                " has the variants [",
                apply(Function.LISTED, rows, _NAME),
            ),
            *(
                f"], and the stage {', '.join(map(str, wanted))}: SageMaker moves traffic in parts "
                "only between equal ones; deploy once with traffic: all_at_once, without alarms",
            ),
        ),
        after=after,
    )
