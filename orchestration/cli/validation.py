"""``orchestrate validate``: everything that is wrong with pipelines, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from orchestration.cli.naming import Named, named
from orchestration.cli.output import FAILED, USAGE, document, note, problem_data, say
from orchestration.cli.rendering import BACKENDS, Backend, rendered
from orchestration.errors import OrchestrationError, Problem


@dataclass(frozen=True, slots=True)
class Verdict:
    """What there is to say of one pipeline."""

    pipeline: str
    problems: tuple[Problem, ...]
    readable: bool = True

    def data(self) -> dict[str, object]:
        """For programs."""
        return {
            "pipeline": self.pipeline,
            "valid": not self.problems,
            "problems": problem_data(self.problems),
        }


def validate(pipelines: Sequence[str], backends: Sequence[Backend], *, as_json: bool) -> None:
    """Say what is wrong, and exit with what that means."""
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
        return Verdict(text, tuple(_problems(which, backends)))
    except typer.BadParameter as error:
        # The other pipelines are looked at all the same.
        return Verdict(text, (Problem("", error.message),), readable=False)


def _problems(which: Named, backends: Sequence[Backend]) -> list[Problem]:
    try:
        workflow = which.load().lower()
        found = [
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
            found += [
                Problem(problem.path, f"{backend.value}: {problem.message}")
                for problem in _of(error)
            ]
    return found


def _of(error: OrchestrationError) -> list[Problem]:
    return list(getattr(error, "problems", None) or [Problem("", str(error))])


def _tell(verdict: Verdict, *, as_json: bool) -> None:
    if not verdict.problems:
        if not as_json:
            say(f"{verdict.pipeline}: valid")
        return
    count = len(verdict.problems)
    note(f"{verdict.pipeline}: {count} problem{'s' if count > 1 else ''}")
    for problem in verdict.problems:
        note("  " + str(problem).replace("\n", "\n    "))
