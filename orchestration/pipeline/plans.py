"""Plans of ``strategy: {kind: auto}``: found by the planner, pinned in a lock file, put in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline.afterwards.sections import all_stages
from orchestration.pipeline.defaults.merging import merged

if TYPE_CHECKING:
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.answers.plans import Plan, Plans
    from orchestration.planning.search.asked.account import AccountLimits
    from orchestration.stages.training.automatic import Auto

Pinned = Mapping[str, Any]
"""The part of a plan that the lock file holds."""


def automatic(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The stages of a pipeline's data whose strategy is to be planned, by name."""
    for name, stage in all_stages(data):
        if isinstance(stage, dict):
            strategy = stage.get("strategy")
            if isinstance(strategy, dict) and strategy.get("kind") == "auto":
                yield str(name), stage


def settle(data: Mapping[str, Any], directory: Path, pins: Mapping[str, Pinned]) -> list[Problem]:
    """Put pinned plans in the place of ``auto``; what was asked anew since stays as it is.

    Where a model's ``config.json`` is not at hand (a scheduler has no use for it), the one that the
    plan was made for counts. Returns what contradicts the plans, and what can't be read of models
    that are still to be planned.
    """
    found: list[Problem] = []
    for name, stage in automatic(data):
        pin = pins.get(name)
        if pin is None or pin["asked"] != _asked(stage):
            continue
        path = _config(stage, directory)
        if path is not None and path.is_file() and digest(path) != pin["model"]:
            continue
        tell: Mapping[str, str] = stage["strategy"].get("tell") or {}
        told = {name: pin["tells"][quantity] for quantity, name in tell.items()}
        found += _contradicted(name, stage, told)
        stage["strategy"] = dict(pin["strategy"])
        ranges = _mapping(stage, "ranges")
        free = {key: value for key, value in told.items() if key not in ranges}
        for field, planned in (("cluster", pin["cluster"]), ("hyperparameters", free)):
            given = stage.get(field) or {}
            # What is no mapping stays, and is reported as that.
            stage[field] = {**given, **planned} if isinstance(given, Mapping) else given
    return [*found, *with_models(data, directory)]


def _contradicted(
    name: str, stage: Mapping[str, Any], told: Mapping[str, object]
) -> Iterator[Problem]:
    """Yield the fields that both a stage and its plan set."""
    from orchestration.stages.training.automatic import PICKED

    cluster = stage.get("cluster")
    if isinstance(cluster, Mapping):
        for key in PICKED:
            if cluster.get(key):
                yield Problem(
                    f"cluster.{key}", "is what the planner picks; leave it out", stage=name
                )
    for field in ("hyperparameters", "ranges"):
        for key in sorted(_mapping(stage, field).keys() & told.keys()):
            yield Problem(
                f"{field}.{key}",
                "is what strategy.tell sets from the plan; leave out the one or the other",
                stage=name,
            )


def _mapping(stage: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Return a field of a stage; nothing of one that is missing, or wrong as is said elsewhere."""
    value = stage.get(field)
    return value if isinstance(value, Mapping) else {}


def is_pinned(value: object) -> bool:
    """Return whether this is a plan as a lock file holds it."""
    return (
        isinstance(value, Mapping)
        and "model" in value
        and isinstance(value.get("asked"), str)
        and all(isinstance(value.get(name), Mapping) for name in ("cluster", "strategy", "tells"))
    )


def with_models(data: Mapping[str, Any], directory: Path) -> list[Problem]:
    """Put the content of models' ``config.json`` files in the place of their paths."""
    found = []
    for name, stage in automatic(data):
        if (path := _config(stage, directory)) is None:
            continue
        model = stage["strategy"]["model"]
        try:
            model["config"] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            message = f"{path.name} can't be read as JSON: {error}"
            found.append(Problem("strategy.model.config", message, stage=name))
        else:
            model.setdefault("name", path.parent.name or path.stem)
    return found


def model_files(
    data: Mapping[str, Any], directory: Path, pins: Mapping[str, Pinned]
) -> dict[str, str]:
    """Return the digests of the ``config.json`` files that a pipeline's data names, by their paths.

    Of one that is not at hand, it is the digest of the file that its plan was made for.
    """
    digests: dict[str, str] = {}
    for name, stage in automatic(data):
        path = _config(stage, directory)
        if path is not None:
            pin = pins.get(name, {})
            known = digest(path) if path.is_file() else pin.get("model")
            digests[str(stage["strategy"]["model"]["config"])] = str(known)
    return digests


def _config(stage: Mapping[str, Any], directory: Path) -> Path | None:
    model = stage["strategy"].get("model")
    if isinstance(model, dict) and isinstance(model.get("config"), str):
        return directory / str(model["config"])
    return None


def digest(path: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _asked(stage: Mapping[str, Any]) -> str:
    """A digest of what a stage asks the planner for, as it is written."""
    canonical = json.dumps(stage["strategy"], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def of_moved(
    pins: Mapping[str, Pinned], data: Mapping[str, Any], moved: Mapping[str, Any]
) -> dict[str, Pinned]:
    """Return pinned plans for the data of the same file whose paths are written otherwise."""
    now = {name: _asked(stage) for name, stage in automatic(data)}
    then = {name: _asked(stage) for name, stage in automatic(merged(moved).data)}
    return {
        name: {**pin, "asked": then[name]} if pin["asked"] == now.get(name) else pin
        for name, pin in pins.items()
    }


def pins(
    data: Mapping[str, Any],
    directory: Path,
    measurements: Sequence[Measurement] = (),
    limits: AccountLimits | None = None,
) -> tuple[dict[str, Plans], dict[str, Pinned]]:
    """Return the plans for the stages that ask for one, and the lock file's part of them."""
    asked = {name: (_asked(stage), _config(stage, directory)) for name, stage in automatic(data)}
    if wrong := with_models(data, directory):
        raise PipelineError(wrong)
    found = plans(data, measurements, limits)
    kept = {
        name: _pinned(*asked[name], chosen)
        for name, answer in found.items()
        if (chosen := answer.chosen) is not None
    }
    return found, kept


def plans(
    data: Mapping[str, Any],
    measurements: Sequence[Measurement] = (),
    limits: AccountLimits | None = None,
) -> dict[str, Plans]:
    """Return the plan of each stage that asks for one; a :class:`PipelineError` if one is wrong.

    `limits`: those of an account, within which the plans stay.
    """
    from orchestration.planning.search.find import find_plans

    return {
        name: find_plans(
            replace(request.task(), measurements=tuple(measurements)),
            request.space() if limits is None else limits.within(request.space()),
            request.goal(),
        )
        for name, request in requests(data).items()
    }


def requests(data: Mapping[str, Any]) -> dict[str, Auto]:
    """Return what each stage asks the planner for; a :class:`PipelineError` if one is wrong."""
    region = data.get("region")
    return {name: _request(name, stage, region) for name, stage in automatic(data)}


def searches(data: Mapping[str, Any]) -> dict[str, int]:
    """Return how many jobs with its plan a stage may run in search of hyperparameters, by stage."""
    counts = {name: _searched(stage) for name, stage in automatic(data)}
    return {name: count for name, count in counts.items() if count is not None}


def _searched(stage: Mapping[str, Any]) -> int | None:
    """Return the training jobs of a stage's search, where the file says how many."""
    jobs = _mapping(stage, "limits").get("jobs")
    return jobs if isinstance(jobs, int) else None


def _request(name: str, stage: Mapping[str, Any], region: object) -> Auto:
    from pydantic import ValidationError

    from orchestration.planning.search.request import problems_of
    from orchestration.stages.training.automatic import Auto

    try:
        return Auto.model_validate({**_framework(stage), **_in_region(stage["strategy"], region)})
    except ValidationError as error:
        problems = (replace(problem, stage=name) for problem in problems_of(error))
        raise PipelineError(problem.within("strategy") for problem in problems) from error


def _in_region(strategy: Mapping[str, Any], region: object) -> dict[str, Any]:
    """Return a request whose prices are those of the pipeline's region, unless it names one."""
    instances = strategy.get("instances") or {}
    if not isinstance(region, str) or not isinstance(instances, Mapping):
        return dict(strategy)
    return {**strategy, "instances": {"region": region, **instances}}


def _framework(stage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the planner must know of the stage's container, if it is known before a run."""
    named, image = stage.get("framework"), stage.get("image")
    if isinstance(image, str):
        return {"framework": {"image": image}}
    facts = (named.get("name"), named.get("version")) if isinstance(named, dict) else ()
    known = ("pytorch", "huggingface", "tensorflow", "mxnet")
    if facts and facts[0] in known and isinstance(facts[1], str):
        return {"framework": {"name": facts[0], "version": facts[1]}}
    return {}


def told(stage: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the hyperparameters that tell a stage's script of a plan."""
    found: dict[str, Any] = plan.data()
    known = {**found, **found["degrees"]}
    tell: Mapping[str, str] = stage["strategy"].get("tell") or {}
    return {name: known[quantity] for quantity, name in tell.items()}


def _pinned(asked: str, config: Path | None, plan: Plan) -> Pinned:
    from orchestration.stages.training.automatic import Quantity

    found: dict[str, Any] = plan.data()
    told = {**found, **found["degrees"]}
    return {
        "asked": asked,
        "model": None if config is None else digest(config),
        "cluster": {
            "instance_type": plan.instance_type,
            "instance_count": plan.instance_count,
        },
        "strategy": plan.strategy.model_dump(mode="json", exclude_none=True),
        "tells": {name: told[name] for name in get_args(Quantity)},
        "predicted": {
            "layout": found["layout"],
            "hours": round(plan.time_s.expected / 3600, 2),
            "usd": None if plan.cost_usd is None else round(plan.cost_usd.expected, 2),
            "price": found["price"],
            **_intervals(plan),
        },
    }


def _intervals(plan: Plan) -> dict[str, list[float]]:
    """Return low, expected and high figures, for a comparison with what a run takes."""
    p, time, cost = plan.prediction, plan.time_s, plan.cost_usd
    figures = {
        "step_s": (p.low_s, p.step_time_s, p.high_s),
        "memory_gib": (p.memory_low_gib, p.memory_gib, p.memory_high_gib),
        "time_s": (time.low, time.expected, time.high),
    }
    if cost is not None:
        figures["cost_usd"] = (cost.low, cost.expected, cost.high)
    return {name: [float(f"{value:.4g}") for value in each] for name, each in figures.items()}
