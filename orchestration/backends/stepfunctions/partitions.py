"""The partition of AWS that a definition is for, in the ARNs of its integrations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from orchestration.catalog.partitions import partition_of
from orchestration.expressions import Json

_USUAL: Final = "arn:aws:states:::"


def in_region(definition: Mapping[str, Json], region: str | None) -> dict[str, Json]:
    """Return a definition with its integrations in the partition of a region."""
    partition = partition_of(region)
    if partition == "aws":
        return dict(definition)
    return cast("dict[str, Json]", _machine(definition, f"arn:{partition}:states:::"))


def _machine(machine: Mapping[str, Json], start: str) -> Json:
    states = cast("Mapping[str, Mapping[str, Json]]", machine["States"])
    return {**machine, "States": {name: _state(state, start) for name, state in states.items()}}


def _state(state: Mapping[str, Json], start: str) -> Json:
    changed: dict[str, Json] = {}
    resource = state.get("Resource")
    if isinstance(resource, str):
        changed["Resource"] = resource.replace(_USUAL, start, 1)
    if "Branches" in state:
        branches = cast("list[Mapping[str, Json]]", state["Branches"])
        changed["Branches"] = [_machine(branch, start) for branch in branches]
    if "ItemProcessor" in state:
        changed["ItemProcessor"] = _machine(
            cast("Mapping[str, Json]", state["ItemProcessor"]), start
        )
    return {**state, **changed}
