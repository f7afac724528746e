"""State machines that this package rendered, as the pipelines that they were made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orchestration.backends import stepfunctions
from orchestration.backends.origins import parts
from orchestration.errors import OrchestrationError
from orchestration.importing.imported import Imported, Note
from orchestration.pipeline import Pipeline
from orchestration.pipeline.yaml import parsed
from orchestration.stages.kinds import StageSource


def from_rendering(
    definition: Mapping[str, Any], *, stages: Iterable[StageSource] = ()
) -> Imported | Note | None:
    """Return the pipeline that a definition carries; none where it carries none.

    A note says why the one that it carries cannot be rendered here.
    """
    carried = parts(definition)[1:]
    if len(carried) != 2:
        return None
    try:
        pipeline, lock = (parsed(text, Path("Comment")) for text in carried)
        again = _rendered(carried[0], lock, stages)
    except (AttributeError, KeyError, TypeError, ValueError, OrchestrationError) as error:
        return Note("Comment", f"holds a pipeline that can't be read here, and is not: {error}")
    if definition == again:
        return Imported(pipeline, ())
    text = (
        "the definition is not what is rendered here of the pipeline: changed since, or made by "
        "another version; the pipeline does not hold what follows"
    )
    return Imported(pipeline, (Note("States", text), *_changes(again, definition)))


def _rendered(
    text: str, lock: Mapping[str, Any], stages: Iterable[StageSource]
) -> Mapping[str, Any]:
    """Render a pipeline again, in a folder without its code."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        file.write_text(text, encoding="utf-8")
        return stepfunctions.render(Pipeline.load(file, stages=stages, lock=lock).lower())


def _changes(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Note]:
    """Yield all that differs around the states, and in each of them."""
    # Imported here: a definition that nobody changed needs nothing of deployments.
    from orchestration.deploy.differences.definitions import states
    from orchestration.deploy.differences.fields import differing, text

    before, after = _fields(ours, states(ours)), _fields(theirs, states(theirs))
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
    machine: Mapping[str, Any], states: Iterable[tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the fields of a definition and its states, also those inside of others, by place."""
    outside = {str(key): value for key, value in machine.items() if key != "States"}
    return outside | {f"States.{name}": state for name, state in states}
