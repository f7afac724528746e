"""The planner: which instances, how many and which strategy train a model, and what that takes.

Its rooms, of which each imports only those before it:

- `model`: models by their layers and sizes, and configurations: ways to train them on machines.
- `cost`: the seconds and the memory that a configuration takes.
- `search`: the best configurations for a task within limits, and why others were rejected.
- `telling`: plans as text for people.
- `calibration`: how well `cost` predicts published measurements; uses `model` and `cost` only.

>>> from orchestration.planning import Batch, Space, Task, find_plans, of_size
>>> task = Task(
...     model=of_size(7e9), sequence=2048, samples=100_000, batch=Batch(least=256, most=256)
... )
>>> plans = find_plans(task, Space(types=("ml.p4d.24xlarge",), counts=(1, 2)))
>>> plans.chosen.instance_type
'ml.p4d.24xlarge'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.planning.cost.prediction import Prediction, predict
    from orchestration.planning.model.configuration import (
        Configuration,
        ConfigurationError,
        Machine,
    )
    from orchestration.planning.model.hugging_face import from_config
    from orchestration.planning.model.shapes import ModelError, ModelShape
    from orchestration.planning.model.typical_shapes import of_size, transformer
    from orchestration.planning.search.answers.plans import Plan, Plans, Range, Rejected
    from orchestration.planning.search.find import find_plans
    from orchestration.planning.search.objective import (
        CHEAPEST,
        FASTEST,
        Objective,
        by_deadline,
        within_budget,
    )
    from orchestration.planning.search.request import PlanRequest
    from orchestration.planning.search.space import Space
    from orchestration.planning.search.task import Batch, Framework, KnownRate, Lora, Task

_MODULES = {
    "CHEAPEST": "search.objective",
    "FASTEST": "search.objective",
    "Batch": "search.task",
    "Configuration": "model.configuration",
    "ConfigurationError": "model.configuration",
    "Framework": "search.task",
    "KnownRate": "search.task",
    "Lora": "search.task",
    "Machine": "model.configuration",
    "ModelError": "model.shapes",
    "ModelShape": "model.shapes",
    "Objective": "search.objective",
    "Plan": "search.answers.plans",
    "PlanRequest": "search.request",
    "Plans": "search.answers.plans",
    "Prediction": "cost.prediction",
    "Range": "search.answers.plans",
    "Rejected": "search.answers.plans",
    "Space": "search.space",
    "Task": "search.task",
    "by_deadline": "search.objective",
    "find_plans": "search.find",
    "from_config": "model.hugging_face",
    "of_size": "model.typical_shapes",
    "predict": "cost.prediction",
    "transformer": "model.typical_shapes",
    "within_budget": "search.objective",
}
"""The module of each public name. Modules load on first use: a pipeline file that is parsed needs
requests for plans, and neither predictions nor the search."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


__all__ = [
    "CHEAPEST",
    "FASTEST",
    "Batch",
    "Configuration",
    "ConfigurationError",
    "Framework",
    "KnownRate",
    "Lora",
    "Machine",
    "ModelError",
    "ModelShape",
    "Objective",
    "Plan",
    "PlanRequest",
    "Plans",
    "Prediction",
    "Range",
    "Rejected",
    "Space",
    "Task",
    "by_deadline",
    "find_plans",
    "from_config",
    "of_size",
    "predict",
    "transformer",
    "within_budget",
]
