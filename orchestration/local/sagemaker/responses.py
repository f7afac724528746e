"""The members of SageMaker's responses, from botocore's model."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def response_members(operation: str) -> frozenset[str]:
    """Return the names of the members of an operation's response."""
    import botocore.session

    model: Any = botocore.session.Session().get_service_model("sagemaker")
    return frozenset(model.operation_model(operation).output_shape.members)
