"""Problems and warnings of validation, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.expressions import Json
from orchestration.pipeline.afterwards.sections import SECTIONS, placed
from orchestration.preflight.findings import Finding
from orchestration.stages.assuming import assuming

if TYPE_CHECKING:
    from orchestration.errors import Problem
    from orchestration.pipeline import Pipeline

VALIDATION = "validation"


def from_validation(
    problems: Iterable[Problem], warnings: Iterable[Problem] = ()
) -> Iterator[Finding]:
    """Yield the problems and the warnings of validation as findings."""
    for problem in problems:
        yield _finding(problem, certain=True)
    for warning in warnings:
        yield _finding(warning, certain=False)


def with_values(pipeline: Pipeline, parameters: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield what validation says of the stages as they are where parameters have these values."""
    sections = {section: getattr(pipeline, section) for section in SECTIONS}
    before = set(pipeline.warnings())
    for stage in pipeline.every_stage:
        filled = assuming(stage, parameters)
        if filled is stage:
            continue
        refused = [replace(each, stage=stage.name) for each in filled.check(pipeline.context())]
        doubted = [replace(each, stage=stage.name) for each in filled.warnings()]
        told = [each for each in placed(doubted, sections) if each not in before]
        yield from from_validation(placed(refused, sections), told)


def _finding(problem: Problem, *, certain: bool) -> Finding:
    what, _, mend = problem.message.partition("; ")
    return Finding(
        check=VALIDATION,
        severity="fails" if certain else "may fail",
        where=problem.path,
        what=what,
        when="validation refuses it before any run" if certain else "",
        mend=mend,
    )
