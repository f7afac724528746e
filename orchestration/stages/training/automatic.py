"""``strategy: {kind: auto}``: machines and distribution that the planner picks, pinned.

What it picked lies in the pipeline's lock file and takes the place of ``auto`` when the pipeline is
loaded, so that nothing changes by itself; ``orchestrate plan FILE --update`` picks anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from orchestration.planning.search.request import PlanRequest

if TYPE_CHECKING:
    from orchestration.planning.search.answers.plans import Plans

Quantity: TypeAlias = Literal[
    "micro_batch", "accumulation", "global_batch", "recompute", "offload",
    "zero", "shard", "tensor", "pipeline", "context", "expert",
]  # fmt: skip
"""The decisions of a plan that the script must know: samples of a replica at a time, times that it
does so in a step, samples of a step; what the backward pass computes again, what lives in the
host's memory; what data-parallel ranks share (ZeRO 0 to 3) and over how many of them; the degrees
of model parallelism."""


PICKED: Final = ("instance_type", "instance_count", "fallbacks", "groups", "preferences")
"""The fields of a cluster that a plan sets, and that the stage therefore must not."""


class Auto(PlanRequest):
    """Machines and distribution as the planner picks them for a model and an objective."""

    kind: Literal["auto"] = "auto"
    tell: dict[Quantity, str] = {}
    """Hyperparameters that tell the script of the plan: ``{micro_batch: batch_size}``."""

    def plans(self) -> Plans:
        """Search for plans of this request alone: nothing is known of a stage or its pipeline.

        A notebook shows them; it is ``orchestrate plan FILE --update`` that pins one.
        """
        from orchestration.planning.search.find import find_plans

        return find_plans(self.task(), self.space(), self.goal())
