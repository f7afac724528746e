"""Run the checks of ``orchestrate doctor``: what would fail a run, before it is paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cli import values
from orchestration.cli.commands.validation import verdict
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, USAGE, document, note, require, say

if TYPE_CHECKING:
    from orchestration.deploy import Account
    from orchestration.preflight import Finding

_DEFAULT: Final = "aws_default"
"""The connection of a DAG that names none."""
_COLORS = {"fails": typer.colors.RED, "may fail": typer.colors.YELLOW}


def doctor(
    pipeline: str,
    parameters: Sequence[str],
    *,
    account: bool,
    role: str | None,
    connection: str | None,
    url: str | None,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Print all findings, the worst first, and exit with 1 where one of them fails a run."""
    from orchestration.preflight import examine, from_validation, ordered

    _of_the_account(account, {"--role": role, "--connection": connection, "--url": url})
    known = verdict(pipeline, (), parameters)
    found = list(from_validation(known.problems, known.warnings))
    place = None
    if account and not known.problems:
        require({"boto3": "aws"}, what="reading the account")
        from orchestration.cli.commands.deployed.places import Place
        from orchestration.cli.commands.deployment import session_of
        from orchestration.cli.commands.rendering import Backend

        loaded = named(pipeline).load()
        specs = loaded.parameter_specs()
        chosen = values.parameters(specs, parameters, filled=[spec.name for spec in specs])
        session = session_of(region or loaded.region, profile)
        api = None if url is None else Place(on=Backend.AIRFLOW, url=url).api()
        if api is not None:
            connection = connection or _DEFAULT
        place, more = examine(
            loaded, session, chosen, role=role, connection=connection, airflow=api
        )
        found += more
    findings = ordered(found)
    if as_json:
        document(_as_json(pipeline, place, findings))
    else:
        _show(pipeline, place, findings)
    if not known.readable:
        raise typer.Exit(USAGE)
    if any(each.severity == "fails" for each in findings):
        raise typer.Exit(FAILED)


def _of_the_account(account: bool, options: Mapping[str, str | None]) -> None:
    for name, value in options.items():
        if value is not None and not account:
            raise typer.BadParameter("is looked up with --account only", param_hint=name)


def _as_json(pipeline: str, place: Account | None, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "pipeline": pipeline,
        "account": None if place is None else place.id,
        "region": None if place is None else place.region,
        "healthy": not any(each.severity == "fails" for each in findings),
        "findings": [each.data() for each in findings],
    }


def _show(pipeline: str, place: Account | None, findings: Sequence[Finding]) -> None:
    if place is not None:
        note(f"account {place.id}, region {place.region}")
    for each in findings:
        severity = typer.style(each.severity, fg=_COLORS.get(each.severity), bold=True)
        say(f"{severity}: {each.where + ': ' if each.where else ''}{each.what} ({each.check})")
        for label, text in (("why", each.why), ("when", each.when), ("mend", each.mend)):
            if text:
                say(f"  {label}: {text}".replace("\n", "\n    "))
        for source in each.sources:
            say(f"  see: {source}")
    count = {name: sum(each.severity == name for each in findings) for name in _COLORS}
    unread = len(findings) - sum(count.values())
    say(
        f"{pipeline}: {count['fails']} that fail a run, {count['may fail']} that may, "
        f"{unread} not checked"
    )
