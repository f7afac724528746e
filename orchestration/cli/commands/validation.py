"""``orchestrate validate``: all problems of pipelines at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import typer

from orchestration.cli.commands.rendering import BACKENDS, Backend, rendered
from orchestration.cli.naming import Named, named
from orchestration.cli.output import FAILED, USAGE, document, note, problem_data, say
from orchestration.errors import OrchestrationError, Problem

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Verdict:
    """The problems, warnings and facts of one pipeline."""

    pipeline: str
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sizes of clusters and batches, by stage."""
    readable: bool = True

    def data(self) -> dict[str, object]:
        """Return the verdict as JSON."""
        return {
            "pipeline": self.pipeline,
            "valid": not self.problems,
            "problems": problem_data(self.problems),
            "warnings": problem_data(self.warnings),
            "facts": {stage: list(lines) for stage, lines in self.facts.items()},
        }


def validate(pipelines: Sequence[str], backends: Sequence[Backend], *, as_json: bool) -> None:
    """Print all problems, and exit with the status for them."""
    verdicts = [_verdict(text, backends or BACKENDS) for text in pipelines]
    if as_json:
        document(
            {
                "valid": not any(verdict.problems for verdict in verdicts),
                "pipelines": [verdict.data() for verdict in verdicts],
            }
        )
    for verdict in verdicts:
        _tell(verdict, as_json=as_json)
    if not all(verdict.readable for verdict in verdicts):
        raise typer.Exit(USAGE)
    if any(verdict.problems for verdict in verdicts):
        raise typer.Exit(FAILED)


def _verdict(text: str, backends: Sequence[Backend]) -> Verdict:
    try:
        which = named(text)
        pipeline = which.load()
    except OrchestrationError as error:
        return Verdict(text, tuple(_of(error)))
    except typer.BadParameter as error:
        # The other pipelines are still validated.
        return Verdict(text, (Problem("", error.message),), readable=False)
    return Verdict(
        text,
        tuple(_problems(which, pipeline, backends)),
        tuple(pipeline.warnings()),
        pipeline.facts(),
    )


def _problems(which: Named, pipeline: Pipeline, backends: Sequence[Backend]) -> list[Problem]:
    try:
        workflow = pipeline.lower()
        problems = [
            Problem(
                "",
                f"{key} changed since it was locked; run `orchestrate lock {which}`",
            )
            for key in which.stale()
        ]
    except OrchestrationError as error:
        return _of(error)
    for backend in backends:
        try:
            rendered(backend, workflow)
        except OrchestrationError as error:
            problems += [
                replace(problem, message=f"{backend.value}: {problem.message}")
                for problem in _of(error)
            ]
    return problems


def _of(error: OrchestrationError) -> list[Problem]:
    return list(getattr(error, "problems", None) or [Problem("", str(error))])


def _tell(verdict: Verdict, *, as_json: bool) -> None:
    if not verdict.problems and not as_json:
        say(f"{verdict.pipeline}: valid")
        for stage, lines in verdict.facts.items():
            for line in lines:
                say(f"  {stage}: {line}")
    for word, problems in (("problem", verdict.problems), ("warning", verdict.warnings)):
        if problems:
            note(f"{verdict.pipeline}: {len(problems)} {word}{'s' if len(problems) > 1 else ''}")
        for problem in problems:
            note("  " + str(problem).replace("\n", "\n    "))
