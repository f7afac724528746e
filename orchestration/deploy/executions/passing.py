"""The roles that a run hands on, which are of the account that it runs in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from orchestration.deploy.account import Account, owning
from orchestration.deploy.parameters import with_defaults
from orchestration.deploy.permissions.patterns import Known, listings, pattern
from orchestration.deploy.permissions.requests import calls, roles
from orchestration.expressions import Json
from orchestration.graph import Workflow, all_steps

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline


def passing(pipeline: Pipeline, values: Mapping[str, Json], account: Account) -> None:
    """Raise a :class:`~orchestration.errors.DeployError` for a role of another account.

    ``values`` are those of a run's parameters; AWS would refuse the run's first call with the role.
    """
    owning(pipeline.name, _handed(pipeline.lower(), values), account)


def _handed(workflow: Workflow, values: Mapping[str, Json]) -> Iterator[str]:
    known = Known(
        parameters=with_defaults(workflow.parameters, values),
        listings=listings(workflow.graph),
        steps={step.name: step for step in all_steps(workflow.graph)},
    )
    for _, operation, inside in calls(workflow.graph, known):
        if operation.assumes is None:  # Else its account is that of the role that is assumed.
            for role in roles(operation.request):
                yield pattern(role, inside)
