"""``orchestrate plan`` and ``catalog``: instances for a training job, and the choice of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.commands.rendering import lock_text
from orchestration.cli.output import FAILED, console, document, note, require, say
from orchestration.errors import PipelineError, Problem, near

if TYPE_CHECKING:
    from rich.table import Table

    from orchestration.catalog import Instance
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.answers.plans import Plan, Plans
    from orchestration.planning.search.asked.account import AccountLimits
    from orchestration.planning.search.request import PlanRequest


def plan(
    path: Path,
    report: Path | None,
    *,
    stage: str | None = None,
    update: bool = False,
    everything: bool = False,
    as_json: bool = False,
    measurements: Path | None = None,
    limits: AccountLimits | None = None,
) -> None:
    """Plan the stages of a pipeline, or a request, and exit with 1 if there is no plan.

    The file is a planning request, or a pipeline with stages whose strategy is ``auto``; with
    ``update`` their plans are pinned in its lock file. ``measurements``: the file of those; by
    default the one beside it, if there is one. ``limits``: those of an account to stay within.
    """
    answers, pins = _answers(path, stage, measured(path, measurements), limits)
    complete = all(plans.chosen is not None for plans in answers.values())
    # Before anything is shown: what reads it may end early, as `head` does.
    pinned = _pin(path, pins, update=update) if complete and (update or pins is not None) else ""
    if report is not None:
        _report(report, answers, path)
    if as_json:
        document(
            {name: plans.data() for name, plans in answers.items()}
            if pins is not None
            else answers[""].data()
        )
    else:
        show_answers(answers, _searches(path) if pins is not None else {}, limits, everything)
    if not complete:
        raise typer.Exit(FAILED)
    if pinned:
        note(pinned)


def show_answers(
    answers: Mapping[str, Plans],
    searches: Mapping[str, int],
    limits: AccountLimits | None,
    everything: bool,
) -> None:
    """Print the plans of stages; ``searches``: the training jobs of those that search."""
    for name, plans in answers.items():
        show_plans(plans, name)
        if limits is not None:
            _show_account(plans, limits)
        _show_search(plans, name, searches.get(name))
        if everything:
            _show_everything(plans)
    if not everything:
        note("more: --all, --report plan.html, --json")


def measured(path: Path, file: Path | None) -> tuple[Measurement, ...]:
    """Read the measurements of a file's trainings; none, where there is no file of them."""
    from orchestration.planning.model.measurements import beside
    from orchestration.planning.model.measurements import read as read_measurements

    file = file or beside(path)
    return read_measurements(file) if file.exists() else ()


def _answers(
    path: Path,
    stage: str | None,
    measurements: tuple[Measurement, ...],
    limits: AccountLimits | None,
) -> tuple[dict[str, Plans], dict[str, Any] | None]:
    """Compute plans by stage, and the lock file that pins them; ``None`` for a request."""
    from orchestration.pipeline.files import planned
    from orchestration.pipeline.yaml import load
    from orchestration.planning.search.find import find_plans

    if "stages" not in load(path):
        request = read(path)
        task = replace(request.task(), measurements=measurements)
        space = request.space() if limits is None else limits.within(request.space())
        return {"": find_plans(task, space, request.goal())}, None
    plans, pins = planned(path, measurements, limits)
    if not plans:
        raise PipelineError(
            [
                Problem(
                    "stages", "no stage has strategy: {kind: auto, …}, so there is nothing to plan"
                )
            ]
        )
    if stage is not None and stage not in plans:
        raise typer.BadParameter(f"there is no {stage!r}{near(stage, plans)}", param_hint="--stage")
    return {name: plans[name] for name in ([stage] if stage else plans)}, pins


def account_limits(path: Path, region: str | None, profile: str | None) -> AccountLimits:
    """Read the limits of an account; by default, in the region that the file names."""
    require({"boto3": "aws"}, what="reading quotas")
    from orchestration.cli.commands.deployment import session_of
    from orchestration.cli.commands.reading.limits import limits
    from orchestration.pipeline.yaml import load

    data = {} if path.suffix == ".py" else load(path)
    own = data.get("region", (data.get("instances") or {}).get("region"))
    return limits(session_of(region or (own if isinstance(own, str) else None), profile))


def _show_account(plans: Plans, limits: AccountLimits) -> None:
    chosen = plans.chosen
    taken = None if chosen is None else (chosen.instance_type, chosen.instance_count)
    for line in limits.lines(plans.space, taken):
        say(f"{'account':<12}{line}")


def _report(report: Path, answers: Mapping[str, Plans], path: Path) -> None:
    from orchestration.pipeline.yaml import load
    from orchestration.planning.telling.report import page

    if len(answers) > 1:
        raise typer.BadParameter(f"is about one of {', '.join(answers)}", param_hint="--stage")
    [(stage, plans)] = answers.items()
    title = f"{load(path).get('name', path.stem)}, {stage}" if stage else ""
    report.write_text(page(plans, title), encoding="utf-8")
    note(f"wrote {report}")


def _pin(path: Path, pins: Mapping[str, Any] | None, *, update: bool) -> str:
    """Write the lock file of a pipeline, or see whether it holds these plans; returns what to say.

    Raises ``BadParameter`` for a planning request.
    """
    from orchestration.pipeline.pinning.lock_file import lock_path

    if pins is None:
        raise typer.BadParameter(
            "is for pipelines, whose lock files pin plans; this file is a planning request",
            param_hint="--update",
        )
    lock = lock_path(path)
    if lock.exists() and _pinned(lock) == pins:
        return f"{lock} is fresh"
    if update:
        lock.write_text(lock_text(path, pins)[0], encoding="utf-8")
        return f"{lock} written"
    return f"{lock} pins something else; `orchestrate plan {path} --update` writes it"


def _pinned(lock: Path) -> dict[str, Any]:
    """Return what a lock file pins, without what is made of it."""
    content = json.loads(lock.read_text(encoding="utf-8"))
    return {key: content[key] for key in ("sources", "plans") if key in content}


def read(path: Path) -> PlanRequest:
    """Read the request in a file.

    Raises:
        PlanRequestError: with everything that is wrong with it.
        PipelineError: the file, or the model's configuration, can't be read.
    """
    from pydantic import ValidationError

    from orchestration.pipeline.yaml import load
    from orchestration.planning.search.request import PlanRequest, PlanRequestError, problems_of

    try:
        return PlanRequest.model_validate(_with_config(load(path), path.parent))
    except ValidationError as error:
        raise PlanRequestError(problems_of(error)) from error


def _with_config(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the path of the model's configuration in the request by its content."""
    model = data.get("model")
    if not isinstance(model, Mapping) or not isinstance(model.get("config"), str):
        return dict(data)
    where = "model.config"
    file = folder / model["config"]
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineError([Problem(where, f"can't read {file}: {error.strerror}")]) from error
    except ValueError as error:
        raise PipelineError([Problem(where, f"{file} is not JSON: {error}")]) from error
    named = {"name": file.parent.name or file.stem}
    return {**data, "model": {**named, **model, "config": content}}


def show_plans(plans: Plans, stage: str) -> None:
    """Print the answer of a search on one screen."""
    from orchestration.planning.telling.screen import screen

    title = f"{stage}: {plans.task.model.name}" if stage else plans.task.model.name
    here = console()
    # Elsewhere than on a terminal each fact stays in one line, for grep.
    width = max(60, min(here.width, 100)) if here.is_terminal else None
    for line in screen(plans, title, width):
        say(line)


def _show_everything(plans: Plans) -> None:
    from orchestration.planning.search.answers.rejections import rejected
    from orchestration.planning.telling.summary import answer, memory_parts, time_parts

    screen = console()
    if plans.chosen is not None:
        say("")
        screen.print(_facts(answer(plans)))
        parts = memory_parts(plans.chosen)
        say("memory (GiB): " + ", ".join(f"{name} {gib:.1f}" for name, gib in parts if gib))
        seconds = time_parts(plans.chosen)
        say(
            "step (s): "
            + ", ".join(f"{name} {value:.3f}" for name, value in seconds if value)
            + "\n"
        )
        screen.print(_plans("Not beaten in both time and cost", plans.front))
        if plans.alternatives:
            screen.print(_plans("Other layouts on the same instances", plans.alternatives))
    reasons = [(each.what, each.reason, each.detail) for each in rejected(plans)]
    screen.print(_table("Rejected", ("what", "reason", "why"), reasons))


def _searches(path: Path) -> dict[str, int]:
    from orchestration.pipeline import plans
    from orchestration.pipeline.nesting.inlining import whole

    return plans.searches(whole(path).data)


def _show_search(plans: Plans, stage: str, jobs: int | None) -> None:
    """Tell what a search of so many training jobs may take; the plan is about each of them."""
    if jobs is None or plans.chosen is None:
        return
    cost = plans.chosen.cost_usd
    hours = f"{jobs * plans.chosen.time_s.expected / 3600:,.1f} h of these instances"
    dollars = "" if cost is None else f" and ${jobs * cost.expected:,.0f}"
    say(f"{stage}: up to {jobs} such training jobs, {hours}{dollars}")


def _facts(facts: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, text in facts:
        table.add_row(name, text)
    return table


def _plans(title: str, plans: Iterable[Plan]) -> Table:
    from orchestration.planning.search.answers.plans import HEADINGS, row

    return _table(title, HEADINGS, [row(each) for each in plans])


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for each in rows:
        table.add_row(*(escape(cell) for cell in each))
    return table


def catalog(pattern: str, *, as_json: bool) -> None:
    """Show the instance types whose names match, with prices; exit with 1 if none does."""
    from orchestration.catalog import instances, price, sources

    matches = [each for name, each in instances().items() if fnmatchcase(name, pattern)]
    if not matches:
        note(f"unknown instance type {pattern!r}{near(pattern, instances())}")
        raise typer.Exit(FAILED)
    if as_json:
        from dataclasses import asdict

        document(
            {
                "instances": [
                    asdict(each)
                    | {"price": None if (known := price(each.name)) is None else asdict(known)}
                    for each in matches
                ],
                "sources": [asdict(source) for source in sources().values()],
            }
        )
        return
    headings = ("type", "devices", "GiB each", "vCPU", "host GiB", "Gbit/s", "EFA", "USD/h", "of")
    console().print(_table("", headings, [_described(each) for each in matches]))
    say("?: no source states it; ~: an estimate; `--json` shows the sources")


def _described(instance: Instance) -> tuple[str, ...]:
    from orchestration.catalog import accelerators, price

    usual = price(instance.name)
    name = accelerators()[instance.accelerator].name if instance.accelerator else "CPU"
    return (
        instance.name,
        f"{instance.devices} x {name}" if instance.devices else name,
        "" if not instance.devices else _told(instance.device_memory_gib),
        _told(instance.vcpus),
        _told(instance.host_memory_gib),
        _told(instance.network_gbps),
        _told(instance.efa_interfaces),
        "?" if usual is None else f"{'~' if usual.estimate else ''}{usual.usd_per_hour:,.3f}",
        "" if usual is None else f"{usual.region} {usual.date or 'undated'}",
    )


def _told(value: float | None) -> str:
    return "?" if value is None else f"{value:,.4g}"
