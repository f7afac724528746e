"""Checks of the stages after the end of a run, and of what reads them or the run's outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestration.errors import Problem
from orchestration.expressions import RunOutcome, walk
from orchestration.pipeline.afterwards.sections import AFTER_END, ALWAYS
from orchestration.refs import Ref

if TYPE_CHECKING:
    from orchestration.pipeline.draft import Draft, Written

NAME: Final = "outcome"
"""The step by whose outputs the stages after a run's end read how it ended."""
_TOO_EARLY: Final = (
    "the outcome is known after the end of a run; {outcome: …} is for the stages of "
    f"{', '.join(AFTER_END[:-1])} and {AFTER_END[-1]}"
)


def problems(draft: Draft) -> Iterator[Problem]:
    """Yield what is wrong with stages after the end, and with what is read of an outcome."""
    for field, value in (("workspace", draft.workspace), ("role", draft.role)):
        if any(isinstance(node, RunOutcome) for node in walk(value)):
            yield Problem(field, _TOO_EARLY)
    sections = {written.name: written.section for written in draft.stages}
    has_last = any(section in AFTER_END for section in sections.values())
    for written in draft.stages:
        if written.name == NAME and has_last:
            message = "is what the end of a run is called where stages follow it; rename the stage"
            yield Problem("name", message, stage=written.name)
        for path, message in _of_stage(written, sections):
            yield Problem(path, message, stage=written.name)


def _of_stage(written: Written, sections: dict[str, str]) -> Iterator[tuple[str, str]]:
    is_last = written.section in AFTER_END
    for path, node in written.references:
        if isinstance(node, RunOutcome) and not is_last:
            yield path, _TOO_EARLY
        if isinstance(node, Ref) and (of := sections.get(node.stage)) is not None:
            message = _reading(node, written.section, of)
            if message is not None:
                yield path, message
    for other in written.after:
        if (of := sections.get(other)) is None or of == written.section:
            continue
        if of in AFTER_END and not is_last:
            yield "after", f"{other} runs after the end ({of}), so no stage can wait for it"
        elif is_last and of not in AFTER_END:
            yield "after", f"runs after all of them have ended; remove {other}"


def _reading(ref: Ref[object], section: str, of: str) -> str | None:
    """Return why a stage of one field can't read an output of another's; ``None``: it can."""
    if of == section or (of == ALWAYS and section in AFTER_END):
        return None
    if of not in AFTER_END:
        return None
    if section not in AFTER_END:
        return f"{ref.stage} runs after the end ({of}), so no other stage can read it"
    return f"{ref.stage} runs {of} only, so a stage of {section} can't read it"
