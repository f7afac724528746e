"""``orchestrate validate``: all problems of pipelines at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from orchestration.cli.commands.reading.python_files import imported
from orchestration.cli.commands.rendering import BACKENDS, Backend, rendered, warnings_of
from orchestration.cli.naming import Named, named, of_file
from orchestration.cli.output import FAILED, USAGE, document, note, problem_data, require, say
from orchestration.cli.values import parameters as parse
from orchestration.errors import OrchestrationError, Problem
from orchestration.phrases import counted

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_UNSCHEDULED = (
    "scheduled runs have no value for it, and Airflow refuses its DAG file; give it a default or a "
    "value in the schedule, or, if `dag(…, parameters=…)` gives it, validate the DAG file itself "
    "or add `-p NAME=VALUE`"
)
_UNTRIGGERED = (
    "triggered runs have no value for it, and Airflow refuses its DAG file; give it a default or a "
    "value in the trigger, or, if `dag(…, parameters=…)` gives it, validate the DAG file itself "
    "or add `-p NAME=VALUE`"
)


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


def validate(
    pipelines: Sequence[str],
    backends: Sequence[Backend],
    parameters: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Print all problems, and exit with the status for them.

    ``parameters`` are ``name=value`` pairs that scheduled runs get from elsewhere.
    """
    verdicts = [verdict(text, backends, parameters) for text in pipelines]
    if as_json:
        document(
            {
                "valid": not any(each.problems for each in verdicts),
                "pipelines": [each.data() for each in verdicts],
            }
        )
    for each in verdicts:
        _tell(each, as_json=as_json)
    if not all(each.readable for each in verdicts):
        raise typer.Exit(USAGE)
    if any(each.problems for each in verdicts):
        raise typer.Exit(FAILED)


def verdict(text: str, backends: Sequence[Backend], pairs: Sequence[str]) -> Verdict:
    """Return everything that is wrong with a pipeline, or with an Airflow DAG file."""
    if text.endswith(".py"):
        return _of_dag_file(text)
    try:
        which = named(text)
        pipeline = which.load()
    except OrchestrationError as error:
        return Verdict(text, tuple(_of(error)))
    except typer.BadParameter as error:
        # The other pipelines are still validated.
        return Verdict(text, (Problem("", error.message),), readable=False)
    try:
        specs = pipeline.parameter_specs()
        values = parse(specs, pairs, filled=[spec.name for spec in specs])
    except typer.BadParameter as error:
        return Verdict(text, (Problem("", error.message),), readable=False)
    unscheduled = [name for name in pipeline.unscheduled() if name not in values]
    untriggered = [name for name in pipeline.untriggered() if name not in values]
    problems = _problems(which, pipeline, backends or BACKENDS)
    # Only who names Airflow is sure to run it there, from a DAG file that is not at hand here.
    if Backend.AIRFLOW in backends:
        problems += [Problem(f"parameters.{name}", _UNSCHEDULED) for name in unscheduled]
        told = [name for name in untriggered if name not in unscheduled]
        problems += [Problem(f"parameters.{name}", _UNTRIGGERED) for name in told]
    answered = {"schedule.parameters": unscheduled, "trigger.parameters": untriggered}
    warnings = [
        warning
        for warning in pipeline.warnings()
        if warning.field not in answered or (answered[warning.field] and not problems)
    ]
    schedule = pipeline.schedule_spec()
    if schedule is not None:
        from orchestration.pipeline.schedules.checking import over

        warnings += over(schedule, datetime.now(tz=UTC))
    if not problems:
        warnings += warnings_of(backends or BACKENDS, pipeline.lower())
    return Verdict(text, tuple(problems), tuple(warnings), pipeline.facts())


def _of_dag_file(text: str) -> Verdict:
    """Run a DAG file as Airflow does; every pipeline in it says what is wrong with it."""
    try:
        # Airflow logs to what is the standard output when it is imported, which is the answer's.
        with TemporaryDirectory() as home, redirect_stdout(sys.stderr):
            require({"airflow.sdk": "airflow"}, what="validating a DAG file")
            # It writes a configuration where it is told to live.
            os.environ.setdefault("AIRFLOW_HOME", home)
            from airflow.sdk import DAG

            from orchestration.airflow import versions  # noqa: F401 (refuses what can't import more)
            from orchestration.airflow.dags.groups import registering

            with registering() as registered:
                values = imported(Path(text))
    except OrchestrationError as error:
        return Verdict(text, tuple(_of(error)))
    except OSError as error:
        return Verdict(text, (Problem("", str(error)),), readable=False)
    if not registered and not any(isinstance(value, DAG) for value in values.values()):
        message = (
            "expected a DAG file, got one without a DAG; a pipeline in Python is validated as "
            + of_file(Path(text))
        )
        return Verdict(text, (Problem("", message),))
    return Verdict(text, ())


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


def _tell(told: Verdict, *, as_json: bool) -> None:
    if not told.problems and not as_json:
        say(f"{told.pipeline}: valid")
        for stage, lines in told.facts.items():
            for line in lines:
                say(f"  {stage}: {line}")
    for word, problems in (("problem", told.problems), ("warning", told.warnings)):
        if problems:
            note(f"{told.pipeline}: {counted(len(problems), word)}")
        for problem in problems:
            note("  " + str(problem).replace("\n", "\n    "))
