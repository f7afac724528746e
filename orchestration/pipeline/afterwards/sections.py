"""The fields of a pipeline that hold stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from orchestration.errors import Problem

STAGES: Final = "stages"
ON_FAILURE: Final = "on_failure"
ON_SUCCESS: Final = "on_success"
ALWAYS: Final = "always"
AFTER_END: Final = (ON_FAILURE, ON_SUCCESS, ALWAYS)
"""The fields with the stages after the end of a run."""
SECTIONS: Final = (STAGES, *AFTER_END)


def in_section(data: Mapping[str, Any], section: str) -> Iterator[tuple[object, Any]]:
    """Yield the stages of one field of a pipeline's data, each with its name."""
    stages = data.get(section)
    if isinstance(stages, Mapping):
        yield from stages.items()
    elif isinstance(stages, list | tuple):
        for stage in stages:
            yield _name(stage), stage


def all_stages(data: Mapping[str, Any]) -> Iterator[tuple[object, Any]]:
    """Yield all stages of a pipeline's data, each with its name."""
    for section in SECTIONS:
        yield from in_section(data, section)


def placed(problems: Iterable[Problem], data: Mapping[str, Any]) -> list[Problem]:
    """Return problems with the fields that their stages stand in."""
    sections = {
        str(name): section
        for section in reversed(SECTIONS)
        for name, _ in in_section(data, section)
    }
    return [
        replace(problem, section=sections.get(problem.stage or "", problem.section))
        for problem in problems
    ]


def _name(stage: object) -> object:
    return stage.get("name") if isinstance(stage, Mapping) else getattr(stage, "name", None)
