"""``orchestrate plan FILE.py``: plans for the pipelines that a Python file builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.commands.planning import measured, show_answers
from orchestration.cli.commands.reading.python_files import imported
from orchestration.cli.output import FAILED, document, note
from orchestration.errors import PipelineError, Problem, near

if TYPE_CHECKING:
    from orchestration.pipeline.pinning.in_python import Built
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.answers.plans import Plans
    from orchestration.planning.search.asked.account import AccountLimits


def plan_file(
    path: Path,
    report: Path | None,
    *,
    stage: str | None,
    update: bool,
    everything: bool,
    as_json: bool,
    measurements: Path | None,
    limits: AccountLimits | None,
) -> None:
    """Plan the pipelines of a file, and exit with 1 if a stage has no plan."""
    from orchestration.pipeline import plans

    found = _planned(path, measured(path, measurements), limits)
    answers = {_key(each, name): plan for each in found for name, plan in each.answers.items()}
    searches = {
        _key(each, name): n for each in found for name, n in plans.searches(each.data).items()
    }
    shown = answers if stage is None else _only(stage, answers)
    complete = all(each.chosen is not None for each in shown.values())
    # Before anything is shown: what reads it may end early, as `head` does.
    pinned = [_pin(path, each, update=update) for each in found] if complete else []
    if report is not None:
        _report(report, shown, path)
    if as_json:
        document({name: each.data() for name, each in shown.items()})
    else:
        show_answers(shown, searches, limits, everything)
    if not complete:
        raise typer.Exit(FAILED)
    for said in pinned:
        note(said)


def _key(pipeline: Built, stage: str) -> str:
    """Name a stage among those of all pipelines of a file."""
    return f"{pipeline.data['name']}.{stage}"


def _only(stage: str, answers: Mapping[str, Plans]) -> Mapping[str, Plans]:
    """Return the answer for a stage, named alone or with its pipeline."""
    keys = [key for key in answers if stage in (key, key.partition(".")[2])]
    if not keys:
        message = f"there is no {stage!r}{near(stage, answers)}"
        raise typer.BadParameter(message, param_hint="--stage")
    if len(keys) > 1:
        message = f"{stage!r} is in several pipelines; name one: {', '.join(keys)}"
        raise typer.BadParameter(message, param_hint="--stage")
    return {key: answers[key] for key in keys}


def _planned(
    path: Path, measurements: Sequence[Measurement], limits: AccountLimits | None
) -> list[Built]:
    """Import a file, and return the pipelines that it builds with stages to plan."""
    from orchestration.pipeline import plans
    from orchestration.pipeline.pinning.in_python import building

    def planner(data: Mapping[str, Any], folder: Path) -> Any:
        return plans.pins(data, folder, measurements, limits)

    with building(planner) as built:
        try:
            imported(path)
        except PipelineError:
            # A stage without a plan is refused, which its answer explains better.
            if not any(plan.chosen is None for each in built for plan in each.answers.values()):
                raise
    found = [each for each in built if each.answers]
    if not found:
        message = "no pipeline has a stage with strategy=Auto(…), so there is nothing to plan"
        raise PipelineError([Problem(path.name, message)])
    return found


def _report(report: Path, answers: Mapping[str, Plans], path: Path) -> None:
    from orchestration.planning.telling.report import page

    if len(answers) > 1:
        raise typer.BadParameter(f"is about one of {', '.join(answers)}", param_hint="--stage")
    [(stage, plans)] = answers.items()
    report.write_text(page(plans, f"{path.stem}, {stage}"), encoding="utf-8")
    note(f"wrote {report}")


def _pin(path: Path, planned: Built, *, update: bool) -> str:
    """Write the lock file of a pipeline, or see whether it has these plans; returns what to say."""
    from orchestration.backends.layout import laid_out

    text = laid_out(planned.content(planned.pins))
    if planned.lock.exists() and planned.lock.read_text(encoding="utf-8") == text:
        return f"{planned.lock} is fresh"
    if update:
        planned.lock.write_text(text, encoding="utf-8")
        return f"{planned.lock} written"
    return f"{planned.lock} pins something else; `orchestrate plan {path} --update` writes it"
