"""The direct driver: a whole pipeline run from this process, in threads, with boto3.

:func:`run` takes a pipeline; :func:`perform` takes a workflow that is lowered already, and returns
failures instead of raising them.
"""

from orchestration.direct.interrupting import Interrupted
from orchestration.direct.outcomes import Outcome
from orchestration.direct.performing import perform
from orchestration.direct.pipelines import run
from orchestration.direct.progress import OnProgress, Progress, StepRun, StepState

__all__ = [
    "Interrupted",
    "OnProgress",
    "Outcome",
    "Progress",
    "StepRun",
    "StepState",
    "perform",
    "run",
]
