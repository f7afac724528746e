"""State machines that this package rendered, as the pipelines that they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from orchestration.backends import stepfunctions
from orchestration.backends.origins import parts
from orchestration.errors import OrchestrationError
from orchestration.importing.imported import Imported, Note
from orchestration.pipeline import Pipeline
from orchestration.pipeline.yaml import parsed

_TOLD: Final = 5
"""The most states that a note names."""


def from_rendering(definition: Mapping[str, Any]) -> Imported | Note | None:
    """Return the pipeline that a definition carries; none where it carries none.

    A note says why the one that it carries cannot be rendered here.
    """
    carried = parts(definition)[1:]
    if len(carried) != 2:
        return None
    try:
        pipeline, lock = (parsed(text, Path("Comment")) for text in carried)
        again = _rendered(carried[0], lock)
    except (AttributeError, KeyError, TypeError, ValueError, OrchestrationError) as error:
        return Note("Comment", f"holds a pipeline that can't be read here, and is not: {error}")
    changed = sorted(_changed(definition, again))
    if not changed:
        return Imported(pipeline, ())
    named = ", ".join(changed[:_TOLD]) + (", …" if len(changed) > _TOLD else "")
    text = (
        f"{len(changed)} are not what is rendered here of the pipeline ({named}): changed since, "
        "or made by another version; the pipeline does not hold the changes"
    )
    return Imported(pipeline, (Note("States", text),))


def _rendered(text: str, lock: Mapping[str, Any]) -> Mapping[str, Any]:
    """Render a pipeline again, in a folder without its code."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        file.write_text(text, encoding="utf-8")
        return stepfunctions.render(Pipeline.load(file, lock=lock).lower())


def _changed(definition: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """Yield the states that differ, and ``the whole`` where something around them does."""
    theirs, ours = definition.get("States", {}), again["States"]
    for name in dict.fromkeys([*theirs, *ours]):
        if theirs.get(name) != ours.get(name):
            yield str(name)
    if {**definition, "States": {}} != {**again, "States": {}}:
        yield "the whole"
