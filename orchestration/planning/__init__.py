"""The planner: which instances, how many and which strategy train a model, and what that takes.

>>> from orchestration.planning import Batch, Space, Task, of_size, search
>>> task = Task(
...     model=of_size(7e9), sequence=2048, samples=100_000, batch=Batch(least=256, most=256)
... )
>>> plans = search(task, Space(types=("ml.p4d.24xlarge",), counts=(1, 2)))
>>> plans.chosen.instance_type
'ml.p4d.24xlarge'
"""

from orchestration.planning.configuration import Configuration, ConfigurationError, Machine
from orchestration.planning.model_configs import from_config
from orchestration.planning.objective import (
    CHEAPEST,
    FASTEST,
    Objective,
    by_deadline,
    within_budget,
)
from orchestration.planning.plan import Plan, Plans, Range, Rejected
from orchestration.planning.prediction import Prediction, predict
from orchestration.planning.request import PlanRequest
from orchestration.planning.search import search
from orchestration.planning.shapes import ModelError, ModelShape
from orchestration.planning.space import Space
from orchestration.planning.task import Batch, Framework, KnownRate, Lora, Task
from orchestration.planning.usual_shapes import of_size, transformer

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
    "from_config",
    "of_size",
    "predict",
    "search",
    "transformer",
    "within_budget",
]
