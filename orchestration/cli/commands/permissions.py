"""``orchestrate iam``: the least policies of everyone who acts for a pipeline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli import values
from orchestration.cli.naming import named
from orchestration.cli.output import document, note, say
from orchestration.errors import DeployError

if TYPE_CHECKING:
    from orchestration.deploy import Account
    from orchestration.deploy.identities import Identity

_ACCOUNT = re.compile(r"\d{12}")


def iam(
    pipeline: str,
    who: Sequence[str],
    parameters: Sequence[str],
    unrestricted: Sequence[str],
    *,
    account: str | None,
    role: str | None,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Print the policies of a pipeline's identities, each statement with the steps that need it."""
    from orchestration.deploy.identities import WHO, identities

    if unknown := sorted(set(who) - set(WHO)):
        raise typer.BadParameter(
            f"expected {', '.join(WHO)}, got {', '.join(unknown)}", param_hint="--for"
        )
    loaded = named(pipeline).load()
    specs = loaded.parameter_specs()
    place = _place(account, region or loaded.region, profile)
    every = identities(
        loaded,
        place,
        parameters=values.parameters(specs, parameters, filled=[spec.name for spec in specs]),
        unrestricted=unrestricted,
        role_arn=role,
    )
    shown = [each for each in every if not who or each.who in who]
    if as_json:
        document(_as_json(shown, place))
        return
    note(f"account {place.id}, region {place.region}")
    for each in shown:
        _show(each)


def _place(account: str | None, region: str | None, profile: str | None) -> Account:
    """Return the account that was named, else that of the profile, which AWS is asked for."""
    from orchestration.deploy import Account

    if account is None:
        from orchestration.cli.commands.deployment import session_of
        from orchestration.cli.output import require

        require({"boto3": "aws"}, what="asking AWS for the account")
        return Account.of(session_of(region, profile))
    if _ACCOUNT.fullmatch(account) is None:
        raise typer.BadParameter(f"expected 12 digits, got {account!r}", param_hint="--account")
    if region is None:
        raise DeployError("the region is missing; give the pipeline one, or use --region")
    return Account.at(account, region)


def _as_json(shown: Sequence[Identity], place: Account) -> dict[str, Any]:
    return {
        "account": place.id,
        "region": place.region,
        "identities": [
            {
                "for": each.who,
                "name": each.name,
                "policy": each.policy,
                "needed_by": {statement["Sid"]: steps for statement, steps in each.explained()},
                "trust": dict(each.trust) or None,
                "notes": list(each.notes),
            }
            for each in shown
        ],
    }


def _show(identity: Identity) -> None:
    say(f"{identity.who}: {identity.name}")
    for statement in identity.trust.get("Statement", ()):
        source = statement.get("Condition", {}).get("ArnLike", {}).get("aws:SourceArn")
        of = f" for {source}" if source else ""
        say(f"  assumed by {statement['Principal']['Service']}{of}")
    for text in identity.notes:
        say(f"  note: {text}")
    for statement, steps in identity.explained():
        say(f"  {statement['Sid']}: needed by {', '.join(steps)}")
        for action in statement["Action"]:
            say(f"    {action}")
        for resource in statement["Resource"]:
            say(f"      on {resource}")
        for operator, pairs in statement.get("Condition", {}).items():
            for key, value in pairs.items():
                listed = [value] if isinstance(value, str) else value
                say(f"      if {operator} {key}: {', '.join(listed)}")
