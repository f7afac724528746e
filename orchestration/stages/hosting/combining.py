"""Fields of a deployment that do not go with an inference component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.errors import Problem
from orchestration.refs import Expression, is_given
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.endpoints.updates import EndpointUpdate

_SHARED: Final = "is of the whole endpoint, which its components share; remove it"
_ONE: Final = "a component has one container; remove it"
_REFUSED: Final = {
    "serverless": "a component is on instances; remove it",
    "asynchronous": _SHARED,
    "autoscaling": "scales the instances of a whole endpoint; give inference_component autoscaling",
    "data_capture": _SHARED,
    "variants": "the endpoint has one variant for all its components; remove it",
    "preprocessing": _ONE,
    "postprocessing": _ONE,
}


def problems(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what does not go with an inference component."""
    component, extra = stage.inference_component, stage.extra_request
    if component is None:
        for name in ("CreateInferenceComponent", "UpdateInferenceComponent"):
            if getattr(extra, name):
                yield Problem(f"extra_request.{name}", "needs inference_component; remove it")
        return
    if extra.UpdateEndpoint:
        message = "an endpoint of components is never updated; remove it"
        yield Problem("extra_request.UpdateEndpoint", message)
    for name, reason in _REFUSED.items():
        if is_given(getattr(stage, name)):
            yield Problem(name, reason)
    yield from component.problems(stage.instance_count)
    if stage.endpoint_name is None:
        yield Problem("endpoint_name", "is needed: the endpoint that has room for the copies")
    yield from _moved(stage.update)
    if isinstance(component.name, Expression) and stage.update.keep is not None:
        yield Problem(
            "update.keep",
            "components whose names only a run knows share their models' names, and one's could "
            "be deleted for another; write the name out",
        )


def _moved(update: EndpointUpdate) -> Iterator[Problem]:
    if update.traffic not in ("all_at_once", "rolling"):
        yield Problem("update.traffic", "a component is updated all_at_once or rolling")
    elif update.traffic == "all_at_once" and update.alarms is not None:
        yield Problem("update.alarms", "only a rolling update of a component is watched")
    if update.termination_wait_s:
        yield Problem("update.termination_wait_s", "is of whole endpoints; remove it")
    if update.while_busy == "refuse":
        yield Problem("update.while_busy", "an update of a component is waited for; remove it")
