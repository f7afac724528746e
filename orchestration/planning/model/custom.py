"""Models that no formula describes: only their number of parameters is known."""

from __future__ import annotations

from orchestration.planning.model.shapes import ModelError, ModelShape


def custom(parameters: float, name: str | None = None) -> ModelShape:
    """Return a model of any architecture, by its number of parameters.

    Its states and gradients are as large as those of a transformer. Its computing and activations
    are unknown, so that only measurements tell them.

    >>> custom(25.6e6, "resnet-50").parameters
    25600000
    """
    smallest = ModelShape(
        name=name or f"a model of {parameters / 1e6:,.3g} million parameters",
        kind="custom", layers=1, hidden=1, heads=1, kv_heads=1, ffn=1, gated=False, vocabulary=1,
        has_head=False,
    )  # fmt: skip
    rest = round(parameters) - smallest.parameters
    if rest < 0:
        raise ModelError(f"parameters: expected {smallest.parameters} or more")
    return ModelShape(
        name=smallest.name,
        kind="custom", layers=1, hidden=1, heads=1, kv_heads=1, ffn=1, gated=False, vocabulary=1,
        has_head=False, other_parameters=rest,
    )  # fmt: skip
