"""Renderings of this package, as the pipelines that they were made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from orchestration.backends import airflow, stepfunctions
from orchestration.backends.origins import parts, texts
from orchestration.backends.stepfunctions.embedding import fragment
from orchestration.errors import OrchestrationError, PipelineError, Problem
from orchestration.graph import Workflow
from orchestration.importing.imported import Imported, Note
from orchestration.pipeline import Pipeline
from orchestration.pipeline.yaml import parsed
from orchestration.stages.kinds import StageSource

_COMPANION: Final = re.compile(r"Stops and deletes what ended executions of (\S+) have left\.")


@dataclass(frozen=True, slots=True)
class _Rendering:
    """The files that a rendering carries, and how it is made of their pipeline."""

    carried: tuple[str, str]
    """The pipeline's file and its lock file."""
    place: str
    render: Callable[[Workflow], Mapping[str, Any]]


def from_rendering(
    rendered: Mapping[str, Any], *, stages: Iterable[StageSource] = ()
) -> Imported | Note | None:
    """Return the pipeline that a rendering carries; none where it carries none.

    A note says why the one that it carries cannot be rendered here. A rendering of ours that holds
    no pipeline is a :class:`~orchestration.errors.PipelineError`.
    """
    found = _of_dag(rendered) if is_dag(rendered) else _of_machine(rendered)
    if found is None:
        return None
    try:
        pipeline, lock = (parsed(text, Path(found.place)) for text in found.carried)
        again = found.render(_lowered(found.carried[0], lock, stages))
    except (AttributeError, KeyError, TypeError, ValueError, OrchestrationError) as error:
        return Note(found.place, f"holds a pipeline that can't be read here, and is not: {error}")
    if rendered == again:
        return Imported(pipeline, ())
    text = (
        "the definition is not what is rendered here of the pipeline: changed since, or made by "
        "another version; the pipeline does not hold what follows"
    )
    return Imported(pipeline, (Note(_holding(again), text), *_changes(again, rendered)))


def is_dag(data: Mapping[str, Any]) -> bool:
    """Return whether data is a DAG as ``orchestrate render airflow`` writes it."""
    return {"dag_id", "tasks", "loops"} <= data.keys()


def _of_dag(data: Mapping[str, Any]) -> _Rendering:
    match data.get("origin"):
        case [str(pipeline), str(lock)]:
            return _Rendering((pipeline, lock), "origin", _dag)
    text = (
        f"this is the DAG of pipeline {data['dag_id']} without its file; import that, or the DAG "
        "file"
    )
    raise PipelineError([Problem("origin", text)])


def _dag(workflow: Workflow) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(
        airflow.to_json(airflow.render(workflow), texts(workflow.origin))
    )
    return document


def _of_machine(data: Mapping[str, Any]) -> _Rendering | None:
    made = _COMPANION.match(str(data.get("Comment", "")))
    if made is not None:
        text = f"this is the companion of pipeline {made[1]}; import the pipeline's own definition"
        raise PipelineError([Problem("Comment", text)])
    if len(carried := parts(data)[1:]) == 2:
        return _Rendering((carried[0], carried[1]), "Comment", stepfunctions.render)
    states: Mapping[str, Any] = data.get("States") or {}
    for prefix, state in states.items():
        carried = parts(state)[1:] if len(states) == 1 else []
        if len(carried) == 2:
            whole, place = (carried[0], carried[1]), f"States.{prefix}.Comment"
            return _Rendering(whole, place, partial(fragment, prefix=prefix))
    return None


def _lowered(text: str, lock: Mapping[str, Any], stages: Iterable[StageSource]) -> Workflow:
    """Lower a pipeline again, in a folder without its code."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        file.write_text(text, encoding="utf-8")
        return Pipeline.load(file, stages=stages, lock=lock).lower()


def _holding(rendered: Mapping[str, Any]) -> str:
    return "tasks" if is_dag(rendered) else "States"


def _changes(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Note]:
    """Yield all that differs around the states or tasks, and in each of them."""
    # Imported here: a definition that nobody changed needs nothing of deployments.
    from orchestration.deploy.differences.definitions import states
    from orchestration.deploy.differences.fields import differing, text

    inside = _holding(ours)
    parts_of = states if inside == "States" else lambda dag: dag["tasks"].items()
    before, after = (_fields(each, parts_of(each), inside) for each in (ours, theirs))
    for path in dict.fromkeys([*after, *before]):
        one, other = before.get(path), after.get(path)
        if path not in before:
            yield Note(path, f"is not rendered: {text(other)}")
        elif path not in after:
            yield Note(path, f"is missing: {text(one)}")
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            if fields := "; ".join(differing(one, other)):
                yield Note(path, f"is changed: {fields}")
        elif one != other:
            yield Note(path, f"is {text(other)}, rendered as {text(one)}")


def _fields(
    whole: Mapping[str, Any], parts: Iterable[tuple[str, Mapping[str, Any]]], inside: str
) -> dict[str, Any]:
    """Return the fields of a rendering and its parts, also those inside of others, by place."""
    outside = {str(key): value for key, value in whole.items() if key != inside}
    return outside | {f"{inside}.{name}": part for name, part in parts}
