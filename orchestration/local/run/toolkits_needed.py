"""The training toolkits that a run's scripts are started with, looked for before it begins."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from orchestration.errors import ExpressionError, LocalError
from orchestration.expressions import Json, Tree, evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Workflow, all_steps, trees
from orchestration.graph.walking import stage_of
from orchestration.local.sagemaker.hosts.toolkits import Toolkit, toolkit

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_NAMED_IN: Final = ("HyperParameters", "StaticHyperParameters", "Environment")
_PROGRAMS: Final = {"sagemaker_program", "SAGEMAKER_PROGRAM"}
"""The names under which a job tells the toolkit of an image which script to start."""


def check_toolkits(pipeline: Pipeline, workflow: Workflow, values: Mapping[str, Json]) -> None:
    """Raise :class:`LocalError` with every toolkit that is missing, and how to install it.

    A job would fail for it, after all stages before it. Stages with a condition are left to that:
    they may never start.
    """
    missing: dict[str, list[str]] = {}
    for stage, needed in toolkits_needed(pipeline, workflow, values):
        reason = needed.missing(os.environ)
        if reason is not None and stage not in missing.setdefault(reason, []):
            missing[reason].append(stage)
    if missing:
        reasons = (f"stage {', '.join(stages)}: {reason}" for reason, stages in missing.items())
        raise LocalError("\n".join(reasons))


def toolkits_needed(
    pipeline: Pipeline, workflow: Workflow, values: Mapping[str, Json]
) -> Iterator[tuple[str, Toolkit]]:
    """Yield the stages whose images start a script, each with the toolkit that does it here."""
    certain = {
        stage.name
        for stage in pipeline.every_stage
        if stage.when is None and getattr(stage, "local", None) is None
    }
    for step in all_steps(workflow.graph):
        if stage_of(step.name) in certain:
            for tree in trees(step):
                for image in _images(tree, values):
                    yield stage_of(step.name), toolkit(image)


def _images(tree: Tree, values: Mapping[str, Json]) -> Iterator[str]:
    """Yield the training images of a request, and of the jobs of a search in it."""
    if isinstance(tree, list | tuple):
        for each in tree:
            yield from _images(each, values)
    if not isinstance(tree, Mapping):
        return
    own = tree.get("AlgorithmSpecification")
    named = [tree.get(name) for name in _NAMED_IN]
    starts_a_script = any(isinstance(each, Mapping) and _PROGRAMS & each.keys() for each in named)
    if starts_a_script and isinstance(own, Mapping) and "ContainerEntrypoint" not in own:
        # Which image it is may be known only when the run has got that far.
        with contextlib.suppress(ExpressionError):
            image = evaluate(own.get("TrainingImage", ""), Values({}, values))
            yield str(image)
    for each in tree.values():
        yield from _images(each, values)
