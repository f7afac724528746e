"""Ways of distributing training over the hosts of a SageMaker training job.

Each strategy is a Pydantic model with its own fields; what it becomes are the hyperparameters that
the in-container toolkit reads. Which strategy runs where is data with sources (:mod:`.support`),
not code.
"""

from orchestration.strategies.models import (
    MPI,
    SMDDP,
    NoStrategy,
    Strategy,
    TorchDistributed,
    hyperparameters,
    problems,
)

__all__ = [
    "MPI",
    "SMDDP",
    "NoStrategy",
    "Strategy",
    "TorchDistributed",
    "hyperparameters",
    "problems",
]
