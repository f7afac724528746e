"""``orchestrate destroy``: what deploying a pipeline has made is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestration.cli.commands.changing import Consent
from orchestration.cli.commands.deployment import MODULES, session_to_change
from orchestration.cli.naming import deployed
from orchestration.cli.output import document, note, require, say

if TYPE_CHECKING:
    from orchestration.deploy import Destruction


def destroy(
    pipeline: str,
    *,
    stop: bool,
    file_systems: bool,
    logs: bool,
    region: str | None,
    profile: str | None,
    consent: Consent,
) -> None:
    """Destroy the deployment of a pipeline, or show what that would delete."""
    known = deployed(pipeline)
    require(MODULES, what="destroying")
    from orchestration.deploy import destruction
    from orchestration.deploy.account import refusal

    session = session_to_change(known, region, profile)
    found = destruction(known.name, session=session, logs=logs)
    problems = found.obstacles(stop=stop, file_systems=file_systems)
    if not consent.as_json:
        _announce(found, problems)
    if not consent.dry_run:
        if problems:
            raise refusal(f"pipeline {known.name} can't be destroyed", problems)
        if found.changes or found.file_systems:
            consent.ask(f"Delete all of this from account {found.account.id}")
            found.apply(
                stop=stop,
                file_systems=file_systems,
                on_change=lambda change: consent.report(f"did {change.summary}"),
            )
    if consent.as_json:
        document(_as_json(found, problems, dry_run=consent.dry_run))


def _announce(found: Destruction, problems: tuple[str, ...]) -> None:
    """Show what would go, and what is in its way."""
    for change in found.changes:
        say(f"would {change.summary}")
    for system in found.file_systems:
        note(f"file system {system} is there")
    for arn in found.running:
        note(f"execution {arn} is running")
    for kept in found.stays:
        note(f"{kept} stays: it was not deployed for pipeline {found.pipeline}")
    if found.log_group:
        note(f"log group {found.log_group} stays; --logs deletes it, too")
    for problem in problems:
        note(f"warning: {problem}")
    if not found.changes and not found.file_systems:
        note(f"nothing of pipeline {found.pipeline} is deployed here")
    elif found.changes:
        note("data, code, models and endpoints stay")


def _as_json(found: Destruction, problems: tuple[str, ...], *, dry_run: bool) -> dict[str, Any]:
    return {
        "account": found.account.id,
        "region": found.account.region,
        "pipeline": found.pipeline,
        "dry_run": dry_run,
        "changes": [change.summary for change in found.changes],
        "running": list(found.running),
        "file_systems": list(found.file_systems),
        "log_group": found.log_group or None,
        "stays": list(found.stays),
        "obstacles": list(problems),
    }
