"""``orchestrate promote``: the new version of a deployed pipeline gets more runs, or all."""

from __future__ import annotations

from orchestration.cli.commands.changing import Consent, difference, show
from orchestration.cli.commands.deployment import MODULES, session_to_change
from orchestration.cli.naming import deployed
from orchestration.cli.output import document, note, require


def promote(
    pipeline: str,
    *,
    percent: int | None,
    force: bool,
    region: str | None,
    profile: str | None,
    consent: Consent,
) -> None:
    """End the trial of a version, or show what that would change."""
    known = deployed(pipeline)
    require(MODULES, what="promoting")
    from orchestration.deploy import promotion

    session = session_to_change(known, region, profile)
    found = promotion(known.name, session=session, percent=percent)
    differs = bool(found.change.aspects)
    if not consent.as_json:
        if differs:
            show(found.change, full=False)
        else:
            note("nothing to change")
        for text in found.obstacles:
            note(f"warning: {text}")
    if differs and not consent.dry_run:
        if force or not found.obstacles:
            runs = "all runs" if found.weight == 100 else f"{found.weight} of 100 runs"
            consent.ask(f"Give version {found.version} {runs}")
        found.apply(force=force)
        consent.report(f"did {found.change.summary}")
        if found.weight == 100:
            consent.report(
                f"the roles allow what both versions need; `orchestrate deploy` narrows them to "
                f"version {found.version}"
            )
    if consent.as_json:
        document(
            {
                "account": found.account.id,
                "region": found.account.region,
                "pipeline": found.pipeline,
                "dry_run": consent.dry_run,
                "version": found.version,
                "percent": found.weight,
                "changes": [found.change.summary] if differs else [],
                "differences": [difference(found.change)] if differs else [],
                "obstacles": list(found.obstacles),
            }
        )
