"""``orchestrate plan FILE.py``: plans for the pipelines that a Python file builds."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.commands.planning import measured, show_answers
from orchestration.cli.output import FAILED, document, note
from orchestration.errors import PipelineError, Problem, near

if TYPE_CHECKING:
    from orchestration.pipeline.pinning.in_python import PlannedPipeline
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
    answers = {name: plan for each in found for name, plan in each.answers.items()}
    searches = {name: n for each in found for name, n in plans.searches(each.data).items()}
    if stage is not None and stage not in answers:
        raise typer.BadParameter(
            f"there is no {stage!r}{near(stage, answers)}", param_hint="--stage"
        )
    shown = answers if stage is None else {stage: answers[stage]}
    if report is not None:
        _report(report, shown, path)
    if as_json:
        document({name: each.data() for name, each in shown.items()})
    else:
        show_answers(shown, searches, limits, everything)
    if any(each.chosen is None for each in shown.values()):
        raise typer.Exit(FAILED)
    for each in found:
        _pin(path, each, update=update)


def _planned(
    path: Path, measurements: Sequence[Measurement], limits: AccountLimits | None
) -> list[PlannedPipeline]:
    """Import a file, and return the pipelines that it builds with stages to plan."""
    from orchestration.pipeline import plans
    from orchestration.pipeline.pinning.in_python import planning

    def planner(data: Mapping[str, Any], folder: Path) -> Any:
        return plans.pins(data, folder, measurements, limits)

    with planning(planner) as found:
        try:
            _import(path)
        except PipelineError:
            # A stage without a plan is refused, which its answer explains better.
            if not any(plan.chosen is None for each in found for plan in each.answers.values()):
                raise
    if not found:
        message = "no pipeline has a stage with strategy=Auto(…), so there is nothing to plan"
        raise PipelineError([Problem(path.name, message)])
    return found


def _import(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"_planned_{path.stem}", path.resolve())
    if spec is None or spec.loader is None:
        raise typer.BadParameter(f"{path} is not a Python file", param_hint="FILE")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)


def _report(report: Path, answers: Mapping[str, Plans], path: Path) -> None:
    from orchestration.planning.telling.report import page

    if len(answers) > 1:
        raise typer.BadParameter(f"is about one of {', '.join(answers)}", param_hint="--stage")
    [(stage, plans)] = answers.items()
    report.write_text(page(plans, f"{path.stem}, {stage}"), encoding="utf-8")
    note(f"wrote {report}")


def _pin(path: Path, planned: PlannedPipeline, *, update: bool) -> None:
    """Write the lock file of a pipeline, or say whether it holds these plans."""
    from orchestration.backends.layout import laid_out
    from orchestration.pipeline import files

    yaml = files.yaml_path(planned.lock)
    if yaml.exists():
        message = f"{planned.lock.name} is the lock file of {yaml.name}; rename either pipeline"
        raise PipelineError([Problem(yaml.name, message)])
    text = laid_out(files.document({}, planned.pins))
    if planned.lock.exists() and planned.lock.read_text(encoding="utf-8") == text:
        note(f"{planned.lock} is fresh")
    elif update:
        planned.lock.write_text(text, encoding="utf-8")
        note(f"{planned.lock} written")
    else:
        note(f"{planned.lock} pins something else; `orchestrate plan {path} --update` writes it")
