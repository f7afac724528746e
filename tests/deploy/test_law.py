"""Whole pipelines are deployed, run and swept under the derived policies, and not under less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy.identities import Identity
from orchestration.local import Access, EmbeddedAws
from tests.conformance import pipelines
from tests.deploy.law import (
    account,
    allow,
    calls_of_companion,
    cleaning,
    deploy,
    obeyed,
    run,
)
from tests.deploy.permissions.possible import superfluous
from tests.deploy.pipelines import worked

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

ROLES = "arn:aws:iam::123456789012:role/{}"


def listed() -> Pipeline:
    """Return the copy of a list by the role that its deployment makes."""
    return pipelines.listed(batch_role=ROLES.format("listed-us-east-1-batch"))


def synced() -> Pipeline:
    """Return the copy by DataSync by the role that its deployment makes."""
    return pipelines.synced(datasync_role=ROLES.format("synced-us-east-1-datasync"))


PIPELINES = (
    pipelines.served,
    pipelines.searched,
    pipelines.file_system,
    pipelines.ending,
    listed,
    synced,
    worked,
    *(
        pytest.param(make, marks=pytest.mark.thorough)
        for make in (pipelines.exporting, pipelines.kept, pipelines.candidates)
    ),
)


@pytest.mark.parametrize("make", PIPELINES)
def test_everyone_needs_their_whole_policy_and_nothing_more(make: Callable[[], Pipeline]) -> None:
    with EmbeddedAws(enforce_iam=True, time_scale=0.003) as aws:
        law = obeyed(make(), aws)
    assert law.refused() == []
    assert {who: names for who, names in law.superfluous().items() if names} == {}


def test_what_companions_may_call_is_what_their_definitions_hold() -> None:
    for make in (pipelines.served, pipelines.file_system, listed, synced, worked):
        pipeline = make()
        told = {f"{s}:{name[0].lower()}{name[1:]}" for s, name, _ in cleaning(pipeline)}
        assert told == calls_of_companion(pipeline), pipeline.name


@pytest.fixture(scope="module")
def copying() -> Iterator[tuple[EmbeddedAws, Any, dict[str, Identity]]]:
    with EmbeddedAws(enforce_iam=True, time_scale=0.001) as aws:
        account(aws)
        deployment, every = deploy(listed(), aws)
        yield aws, deployment, {each.who: each for each in every}


@pytest.mark.parametrize("who", ["machine", "copying"])
def test_a_run_without_a_statement_is_refused_what_the_evaluation_says(
    who: str, copying: tuple[EmbeddedAws, Any, dict[str, Identity]]
) -> None:
    aws, deployment, every = copying
    identity, name = every[who], every[who].name.rpartition("/")[2]

    def accesses(run_id: str) -> list[Access]:
        before = len(aws.accesses())
        run(deployment, aws, f"{who}-{run_id}")
        return [each for each in aws.accesses()[before:] if each.role == identity.name]

    recorded = [each.need for each in accesses("whole")]
    idle = superfluous(identity.policy, recorded)
    statements = identity.policy["Statement"]
    for number, left_out in enumerate(statements):
        others = [*statements[:number], *statements[number + 1 :]]
        allow(aws, name, {**identity.policy, "Statement": others}, kind="orchestration")
        refused = {each.action for each in accesses(str(number)) if not each.allowed}
        assert refused <= set(left_out["Action"])
        assert (left_out["Sid"] in idle) == (refused == set())
    allow(aws, name, identity.policy, kind="orchestration")
    assert len(idle) < len(statements) / 2
