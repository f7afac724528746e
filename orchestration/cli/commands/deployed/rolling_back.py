"""``orchestrate rollback``: a deployed pipeline becomes what it was before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestration.cli.commands.changing import Consent, difference, show
from orchestration.cli.commands.deployment import MODULES, session_to_change
from orchestration.cli.naming import deployed
from orchestration.cli.output import document, note, require

if TYPE_CHECKING:
    from orchestration.deploy import Rollback


def roll_back(
    pipeline: str,
    *,
    version: int | None,
    region: str | None,
    profile: str | None,
    full: bool,
    consent: Consent,
) -> None:
    """Take a state machine back to an earlier version, or show what that would change."""
    known = deployed(pipeline)
    require(MODULES, what="rolling back")
    from orchestration.deploy import rollback

    session = session_to_change(known, region, profile)
    found = rollback(known.name, session=session, version=version)
    differs = bool(found.change.aspects)
    if not consent.as_json:
        _announce(found, differs=differs, full=full)
    if differs and not consent.dry_run:
        consent.ask(f"Go back to version {found.version}")
        found.apply()
        consent.report(f"did {found.change.summary}")
    if consent.as_json:
        document(_as_json(found, differs=differs, dry_run=consent.dry_run))


def _announce(found: Rollback, *, differs: bool, full: bool) -> None:
    """Show what would change, and what would not."""
    note(f"version {found.version} of {found.published}")
    if not differs:
        note("nothing to change")
        return
    show(found.change, full=full)
    if found.running:
        note(f"{len(found.running)} executions are running and go on as they began")


def _as_json(found: Rollback, *, differs: bool, dry_run: bool) -> dict[str, Any]:
    return {
        "account": found.account.id,
        "region": found.account.region,
        "pipeline": found.pipeline,
        "dry_run": dry_run,
        "version": found.version,
        "changes": [found.change.summary] if differs else [],
        "differences": [difference(found.change)] if differs else [],
        "running": list(found.running),
    }
