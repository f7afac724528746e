"""One pipeline of all probes of a stage, which any backend can run."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from orchestration.pipeline.probing.jobs import STAGE

if TYPE_CHECKING:
    from orchestration.pipeline.model import Pipeline
    from orchestration.pipeline.probing.jobs import Asked, Probe
    from orchestration.planning.search.answers.plans import Plan

WAY: Final = "ORCHESTRATION_PROBE"
"""The variable of a job that says of which stage it is a probe, and how it trains."""

_OF: Final = "of"

_ENDS: Final = (len("-probe"), len("_16"))
"""Characters that follow the names of a pipeline and a stage."""

_LONGEST: Final = (32 - _ENDS[0], 30 - _ENDS[1], 44 - sum(_ENDS))
"""Characters of both names before those, and of the two together."""

_HALF: Final = 19
"""Characters that a stage's name has however long its pipeline's is."""

_DIGITS: Final = 6


def named(pipeline: str, stage: str) -> tuple[str, str]:
    """Return the name of the pipeline that probes a stage, and how its stages' names begin.

    Names too long for that are cut, and end in a digest of the whole.
    """
    of_pipeline, of_stage, of_both = _LONGEST
    begin = _cut(stage, min(of_stage, max(_HALF, of_both - len(pipeline))), "_")
    return f"{_cut(pipeline, min(of_pipeline, of_both - len(begin)), '-')}-probe", begin


def _cut(name: str, longest: int, separator: str) -> str:
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: longest - _DIGITS - 1].rstrip(separator)}{separator}{digest}"


def together(asked: Asked, probes: Sequence[Probe], stages: Sequence[ModuleType] = ()) -> Pipeline:
    """Return one pipeline whose stages are the probes, side by side.

    Each job says how it trains, in the variable :data:`WAY`, so that ``probe --from-runs`` can read
    it back whatever has started it.

    Raises:
        PipelineError: the probes are no valid pipeline.
    """
    from orchestration.pipeline.model import Pipeline

    data = dict(copy.deepcopy(probes[0].data))
    data["name"], begin = named(asked.pipeline, asked.name)
    data["description"] = f"Probes of {asked.pipeline}'s stage {asked.name}."
    data["parameters"] = {}
    data["stages"] = {}
    for number, probe in enumerate(probes, start=1):
        stage = copy.deepcopy(probe.data["stages"][STAGE])
        stage["environment"][WAY] = json.dumps(_way(asked, probe.plan), separators=(",", ":"))
        data["parameters"] |= probe.data["parameters"]
        data["stages"][f"{begin}_{number}"] = stage
    return Pipeline.parse(data, stages=stages)


def _way(asked: Asked, plan: Plan) -> dict[str, Any]:
    from orchestration.stages.training.automatic import Quantity

    found = plan.data()
    known = {**found, **cast("Mapping[str, Any]", found["degrees"])}
    told = {name: known[name] for name in get_args(Quantity)}
    return {_OF: f"{asked.pipeline}/{asked.name}", **told}


def way_of(job: Mapping[str, Any], pipeline: str, stage: str) -> Mapping[str, Any] | None:
    """Return how a probe of a stage trained; ``None``: the job is no such probe.

    `job`: the answer of ``DescribeTrainingJob``.
    """
    text = (job.get("Environment") or {}).get(WAY)
    way = json.loads(text) if text else {}
    return way if way.pop(_OF, None) == f"{pipeline}/{stage}" else None


def is_one(stage: str, begin: str) -> bool:
    """Return whether a stage's name is that of a probe, of those whose names begin so."""
    return re.fullmatch(rf"{re.escape(begin)}_\d+", stage) is not None
