"""The instance group that a strategy trains on, in a heterogeneous cluster.

https://docs.aws.amazon.com/sagemaker/latest/dg/train-heterogeneous-cluster.html
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.errors import near
from orchestration.strategies.facts import group_of
from orchestration.strategies.models import SMDDP, PyTorchDDP
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.use import Finding, Use

_PATH = "strategy.instance_group"


def group_findings(strategy: Strategy, use: Use) -> Iterator[Finding]:
    """Check that a strategy names a group if it must, and one that exists."""
    if "instance_group" not in type(strategy).model_fields:
        return
    group = group_of(strategy)
    if not _takes_group(strategy, use):
        if group is not None:
            yield Finding(_PATH, f"{_NOT_SENT[strategy.kind]}; leave it out, or use mpi", True)
    elif not use.named_groups:
        if group is not None:
            yield Finding(
                _PATH,
                f"names {group!r}, and the cluster has no instance groups; leave it out, or give "
                "cluster.groups",
                True,
            )
    elif group is None:
        names = ", ".join(use.named_groups)
        yield Finding(_PATH, f"is needed: one of the instance groups trains; name {names}", True)
    elif group not in use.named_groups:
        unknown = f"there is no instance group {group!r}{near(group, use.named_groups)}"
        yield Finding(_PATH, unknown, True)


_NOT_SENT = {
    "smddp": "with launcher torchrun, no hyperparameter can name a group",
    "pytorchddp": "for Hugging Face, the SageMaker SDK sends no group with pytorchddp",
}


def _takes_group(strategy: Strategy, use: Use) -> bool:
    match strategy:
        case SMDDP(launcher="torchrun"):
            return False
        case PyTorchDDP():
            return use.framework != "huggingface"
        case _:
            return True
