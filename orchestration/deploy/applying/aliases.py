"""Changes of the alias that starts runs of a state machine."""

from __future__ import annotations

from typing import Any

from orchestration.deploy.aliases.model import ALIAS, Alias
from orchestration.deploy.applying import versions
from orchestration.deploy.applying.calling import unless
from orchestration.deploy.resources import Change
from orchestration.errors import DeployError


def put_alias(client: Any, change: Change, alias: Alias) -> None:
    """Create, update or delete an alias; a new version is published for it if there is none."""
    if change.after is None:
        _delete(client, alias)
        return
    newest = ""
    if any(route.version is None for route in alias.routes):
        newest = versions.publish(client, alias.machine_arn)
    routes = [
        {
            "stateMachineVersionArn": newest
            if route.version is None
            else f"{alias.machine_arn}:{route.version}",
            "weight": route.weight,
        }
        for route in alias.routes
    ]
    request = {"routingConfiguration": routes, "description": alias.text}
    created = change.before is None and unless(
        "Conflict", client.create_state_machine_alias, name=alias.name, **request
    )
    if not created:
        client.update_state_machine_alias(stateMachineAliasArn=alias.arn, **request)


def lead(client: Any, change: Change, after: Alias) -> None:
    """Lead an alias to other versions, unless someone has since it was read."""
    found = client.describe_state_machine_alias(stateMachineAliasArn=after.arn)
    now = {each["stateMachineVersionArn"]: each["weight"] for each in found["routingConfiguration"]}
    before = change.before.routes if isinstance(change.before, Alias) else ()
    if now != {f"{after.machine_arn}:{route.version}": route.weight for route in before}:
        raise DeployError(
            f"alias {after.name} leads to other versions than a moment ago: someone has deployed, "
            "promoted or rolled back since; look again"
        )
    put_alias(client, change, after)


def _delete(client: Any, alias: Alias) -> None:
    """Delete an alias, and then the tag that says where to look for it."""
    if alias.routes:
        unless(
            "ResourceNotFound", client.delete_state_machine_alias, stateMachineAliasArn=alias.arn
        )
    tags = client.list_tags_for_resource(resourceArn=alias.machine_arn)["tags"]
    if {"key": ALIAS, "value": alias.name} in tags:
        client.untag_resource(resourceArn=alias.machine_arn, tagKeys=[ALIAS])
