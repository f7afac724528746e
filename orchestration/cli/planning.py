"""``orchestrate plan`` and ``catalog``: what to rent for a training, and what there is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.output import FAILED, console, document, note, require, say
from orchestration.errors import PipelineError, Problem, near

if TYPE_CHECKING:
    from pydantic import ValidationError
    from rich.table import Table

    from orchestration.catalog import Instance
    from orchestration.planning.plan import Plan, Plans
    from orchestration.planning.request import PlanRequest

_MOST = 25
"""Rejections that a terminal shows; ``--all`` and ``--json`` have the rest."""


def plan(path: Path, report: Path | None, *, everything: bool, as_json: bool) -> None:
    """Plan the training that a file asks for, and exit with 1 where there is no plan."""
    from orchestration.planning.search import search

    if report is not None:
        require({"plotly": "plan"}, what="a report")
    request = read(path)
    plans = search(request.task(), request.space(), request.wanted())
    if report is not None:
        from orchestration.planning.report import page

        report.write_text(page(plans), encoding="utf-8")
        note(f"wrote {report}")
    if as_json:
        document(plans.data())
    else:
        _show(plans, everything=everything)
    if plans.chosen is None:
        raise typer.Exit(FAILED)


def read(path: Path) -> PlanRequest:
    """The request in a file of its own, or under ``plan:`` in a pipeline's.

    Raises:
        PipelineError: with everything that is wrong with it.
    """
    from pydantic import ValidationError

    from orchestration.pipeline.yaml import load
    from orchestration.planning.request import PlanRequest

    data = load(path)
    inner, prefix = (data["plan"], "plan.") if "plan" in data else (data, "")
    if not isinstance(inner, Mapping):
        raise PipelineError([Problem("plan", "is no mapping")])
    try:
        return PlanRequest.model_validate(_with_config(inner, path.parent, prefix))
    except ValidationError as error:
        raise PipelineError(_problems(error, prefix)) from error


def _with_config(data: Mapping[str, Any], folder: Path, prefix: str) -> dict[str, Any]:
    """The request with the content of the model's configuration instead of its path."""
    model = data.get("model")
    if not isinstance(model, Mapping) or not isinstance(model.get("config"), str):
        return dict(data)
    where = f"{prefix}model.config"
    file = folder / model["config"]
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineError([Problem(where, f"can't read {file}: {error.strerror}")]) from error
    except ValueError as error:
        raise PipelineError([Problem(where, f"{file} is no JSON: {error}")]) from error
    named = {"name": file.parent.name or file.stem}
    return {**data, "model": {**named, **model, "config": content}}


def _problems(error: ValidationError, prefix: str) -> list[Problem]:
    from orchestration.planning.request import fields_at

    problems = []
    for one in error.errors(include_url=False):
        where = ".".join(str(part) for part in one["loc"])
        message = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            message = f"there is no such field{near(str(one['loc'][-1]), fields_at(one['loc']))}"
        elif one["type"] == "missing":
            message = "is missing"
        problems.append(Problem(f"{prefix}{where}".rstrip("."), message))
    return problems


def _show(plans: Plans, *, everything: bool) -> None:
    from orchestration.planning.summary import answer, memory_parts, rejected, time_parts

    screen = console()
    if plans.chosen is None:
        say(f"no plan is {plans.objective}:")
        for line in plans.missing:
            say(f"  {line}")
    else:
        say(f"{plans.task.model.name}: {plans.objective}\n")
        screen.print(_facts(answer(plans)))
        parts = memory_parts(plans.chosen)
        say("memory (GiB): " + ", ".join(f"{name} {gib:.1f}" for name, gib in parts if gib))
        seconds = time_parts(plans.chosen)
        say("step (s): " + ", ".join(f"{name} {one:.3f}" for name, one in seconds if one) + "\n")
        screen.print(_plans("Not beaten in both time and cost", plans.front))
        if plans.alternatives:
            screen.print(_plans("Other layouts on the same instances", plans.alternatives))
    reasons = rejected(plans)
    shown = reasons if everything else reasons[:_MOST]
    screen.print(_table("Rejected", ("what", "reason", "why"),
                        [(one.what, one.reason, one.detail) for one in shown]))  # fmt: skip
    if len(shown) < len(reasons):
        say(f"and {len(reasons) - len(shown)} more; see --all")


def _facts(told: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, text in told:
        table.add_row(name, text)
    return table


def _plans(title: str, plans: Iterable[Plan]) -> Table:
    from orchestration.planning.summary import HEADINGS, row

    return _table(title, HEADINGS, [row(one) for one in plans])


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for one in rows:
        table.add_row(*(escape(cell) for cell in one))
    return table


def catalog(pattern: str, *, as_json: bool) -> None:
    """Show the instance types whose names match, with prices; exit with 1 where none does."""
    from orchestration.catalog import instances, price, sources

    found = [one for name, one in instances().items() if fnmatchcase(name, pattern)]
    if not found:
        note(f"no instance type is called {pattern!r}{near(pattern, instances())}")
        raise typer.Exit(FAILED)
    if as_json:
        from dataclasses import asdict

        document(
            {
                "instances": [
                    asdict(one)
                    | {"price": None if (known := price(one.name)) is None else asdict(known)}
                    for one in found
                ],
                "sources": [asdict(one) for one in sources().values()],
            }
        )
        return
    headings = ("type", "devices", "GiB each", "vCPU", "host GiB", "Gbit/s", "EFA", "USD/h", "of")
    console().print(_table("", headings, [_described(one) for one in found]))
    say("? is what no source says; ~ an estimate; `--json` has the sources")


def _described(one: Instance) -> tuple[str, ...]:
    from orchestration.catalog import accelerators, price

    known = price(one.name)
    name = accelerators()[one.accelerator].name if one.accelerator else "CPU"
    return (
        one.name,
        f"{one.devices} x {name}" if one.devices else name,
        "" if not one.devices else _told(one.device_memory_gib),
        _told(one.vcpus),
        _told(one.host_memory_gib),
        _told(one.network_gbps),
        _told(one.efa_interfaces),
        "?" if known is None else f"{'~' if known.estimate else ''}{known.usd_per_hour:,.3f}",
        "" if known is None else f"{known.region} {known.date or 'undated'}",
    )


def _told(value: float | None) -> str:
    return "?" if value is None else f"{value:,.4g}"
