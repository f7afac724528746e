"""The members of SageMaker's responses, from botocore's model."""

from __future__ import annotations

import functools

from orchestration.local.account import documents


@functools.cache
def response_members(operation: str) -> frozenset[str]:
    """Return the names of the members of an operation's response."""
    shape = documents.model("sagemaker").operation_model(operation).output_shape
    return frozenset(shape.members)
