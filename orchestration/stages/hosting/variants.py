"""A variant of an endpoint beside that of the new model.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-ab-testing.html
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import Field, StringConstraints

from orchestration.stages.values import Count, Model, Text

MOST: Final = 10
"""Variants of an endpoint: botocore's ProductionVariantList, 1.43."""
VariantName: TypeAlias = Annotated[
    str, StringConstraints(max_length=63, pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$")
]
"""The name of a variant, as SageMaker takes it."""


class OtherVariant(Model):
    """A variant beside that of the new model."""

    weight: float = Field(default=1.0, ge=0)
    """Its share of the requests, in proportion to the weights of the others."""
    model_name: Text | None = None
    """A model that exists. By default the one that the endpoint serves in this variant, which it
    must have then, and the new model where there is no endpoint yet."""
    instance_type: Text | None = None
    """Machines that serve it; by default those of the stage."""
    instance_count: Count | None = None
    """Machines that serve it; by default as many as of the stage."""
