"""Plans of ``strategy: Auto(…)`` in Python, pinned in ``NAME.lock.json`` beside the file.

The file is the one with the call of ``Pipeline``, and NAME the pipeline's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import PipelineError
from orchestration.stages import Stage
from orchestration.stages.relative import placed_beside_caller

if TYPE_CHECKING:
    from orchestration.pipeline.plans import Pinned
    from orchestration.planning.search.answers.plans import Plans

Planner = Callable[[Mapping[str, Any], Path], "tuple[dict[str, Plans], dict[str, Pinned]]"]
"""Plan the stages of a pipeline's data in a folder: the answers, and what a lock file holds."""


@dataclass(frozen=True, slots=True)
class PlannedPipeline:
    """A pipeline of Python whose stages were planned while its file was imported."""

    data: Mapping[str, Any]
    """Its name, region, and the stages that ask for a plan."""
    lock: Path
    answers: Mapping[str, Plans]
    pins: Mapping[str, Pinned]


@dataclass(slots=True)
class _Planning:
    planner: Planner
    found: list[PlannedPipeline]


_planning: ContextVar[_Planning | None] = ContextVar("planning", default=None)


@contextmanager
def planning(planner: Planner) -> Iterator[list[PlannedPipeline]]:
    """Plan anew the pipelines that are built meanwhile; yields them as they come."""
    now = _Planning(planner, [])
    token = _planning.set(now)
    try:
        yield now.found
    finally:
        _planning.reset(token)


def settled(data: dict[str, Any]) -> dict[str, Any]:
    """Put plans in the place of ``Auto``, pinned ones unless a command plans anew.

    A stage without a plan, or whose request has changed since, stays as it is and is refused later.
    """
    stages, name = data.get("stages"), data.get("name")
    listed = list(stages.values()) if isinstance(stages, Mapping) else stages
    if not isinstance(listed, list | tuple) or not isinstance(name, str):
        return data
    asking = {stage.name: stage for stage in listed if _asks(stage)}
    if not asking:
        return data
    written = {each: _written(stage) for each, stage in asking.items()}
    described = {"name": name, "region": data.get("region"), "stages": written}
    _settle(described, placed_beside_caller(f"{name}.lock.json"))
    replaced = {
        each: type(asking[each]).model_validate({**fields, "name": each})
        for each, fields in written.items()
        if fields["strategy"]["kind"] != "auto"
    }
    return {**data, "stages": [replaced.get(_name(stage), stage) for stage in listed]}


def _settle(described: Mapping[str, Any], lock: Path) -> None:
    """Put plans into the data of stages."""
    from orchestration.pipeline import files, plans

    now = _planning.get()
    if now is None:
        pins: Mapping[str, Pinned] = files.pinned(files.yaml_path(lock))
    else:
        answers, pins = now.planner(described, lock.parent)
        now.found.append(PlannedPipeline(described, lock, answers, pins))
    if wrong := plans.settle(described, lock.parent, pins):
        raise PipelineError(wrong)


def _written(stage: Stage) -> dict[str, Any]:
    """Return a stage as a file would hold it, with its request as it was asked."""
    from orchestration.pipeline.writing import stage_data

    asked = stage.strategy.model_dump(mode="json", exclude_unset=True)  # type: ignore[attr-defined]  # the stage asks for a plan
    return {**stage_data(stage), "strategy": {**asked, "kind": "auto"}}


def _asks(stage: object) -> bool:
    return isinstance(stage, Stage) and (
        getattr(getattr(stage, "strategy", None), "kind", None) == "auto"
    )


def _name(stage: object) -> object:
    return stage.name if isinstance(stage, Stage) else None
