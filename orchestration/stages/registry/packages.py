"""Deployments of what the model registry has: a version of a group, or its latest approved one.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-deploy.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.errors import Problem
from orchestration.expressions import Compare, Result, Tree, join
from orchestration.graph import Permission, Require, Step
from orchestration.refs import is_given
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.registry.versions import latest_approved, permissions, role_problems
from orchestration.stages.values import Text

NO_APPROVED_MODEL: Final = "NoApprovedModel"
"""The error of a run that finds no approved version to deploy."""
_ACTIONS: Final = (
    "sagemaker:CreateModel",
    "sagemaker:DescribeModelPackage",
    "sagemaker:ListModelPackages",
)
_BY_ROLE: Final = _ACTIONS[:2]
"""The actions of the pipeline's own role where the group is read as another."""
_OF_FILES: Final = ("model_archive", "image", "framework", "source")
_WAYS: Final = ("model_data", "model_package", "package_group")


def problems(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what keeps a deployment from knowing the one model that it serves."""
    named = [name for name in _WAYS if getattr(stage, name) is not None]
    if not named:
        yield Problem("model_data", "is needed; or a model_package, or a package_group")
    for name in named[1:]:
        yield Problem(name, f"there is {named[0]} already; remove one of them")
    yield from role_problems(stage.registry_role, stage.package_group)
    if stage.registry_role is not None and stage.package_group is None:
        yield Problem("registry_role", "only a package_group is read; remove this")
    if "model_data" in named:
        return
    for name in _OF_FILES:
        if is_given(getattr(stage, name)):
            yield Problem(name, "the registered version has its own; remove this")
    for name in ("preprocessing", "postprocessing"):
        if is_given(getattr(stage, name)):
            yield Problem(name, "give it to the model_registration: a version has its containers")


def package(stage: DeploymentFields) -> Text | None:
    """Return the ARN of the version that is deployed, if it is one of the registry's."""
    if stage.package_group is not None:
        return Result(_look(stage), "found")
    return stage.model_package


def found(stage: DeploymentFields, after: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps that find the version; none where it is named."""
    group = stage.package_group
    if group is None:
        return ()
    look = latest_approved(_look(stage), group, stage.registry_role, after=after)
    approved = Require(
        name=f"{stage.name}.approved",
        condition=Compare("ne", Result(look.name, "found"), ""),
        error=NO_APPROVED_MODEL,
        cause=join(f"stage {stage.name}: no version is approved in the model group ", group),
    )
    return look, approved


def outputs(stage: DeploymentFields) -> dict[str, Tree]:
    """Return the outputs that only a deployment of the registry's models has."""
    version = package(stage)
    return {} if version is None else {"model_package": version}


def needs(stage: DeploymentFields) -> tuple[Permission, ...]:
    """Return what a group of another account asks of whoever deploys its versions."""
    group = stage.package_group
    actions = _ACTIONS if stage.registry_role is None else _BY_ROLE
    return () if group is None else permissions(group, *actions)


def _look(stage: DeploymentFields) -> str:
    return f"{stage.name}.version"
