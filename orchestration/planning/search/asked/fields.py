"""Types of the fields of requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
Above = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Asked(BaseModel):
    """A part of a request: unknown fields are errors."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", protected_namespaces=()
    )
