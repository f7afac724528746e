"""Settings of a pipeline's state machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

from orchestration.catalog.partitions import partition_of
from orchestration.errors import Problem
from orchestration.refs import Expression
from orchestration.stages.values import Model

_ROLE: Final = r"^arn:aws(-[a-z]+)*:iam::\d{12}:role/[\w+=,.@/-]{1,576}$"


def _role(value: object) -> str:
    if isinstance(value, Mapping | Expression):
        raise ValueError(
            f"expected the ARN of a role, got {value!r}: the state machine gets its role when the "
            "pipeline is deployed, before any run has parameters"
        )
    if not isinstance(value, str) or re.fullmatch(_ROLE, value) is None:
        raise ValueError(f"expected arn:aws:iam::<account>:role/<name>, got {value!r}")
    return value


RoleArn: TypeAlias = Annotated[
    str, BeforeValidator(_role), WithJsonSchema({"type": "string", "pattern": _ROLE})
]
"""The ARN of a role of IAM."""


class StepFunctionsOptions(Model):
    """Settings of the state machine that ``deploy`` makes; other backends ignore them."""

    role: RoleArn | None = None
    """ARN of a role of your own that the state machine, its schedule and its companion run under.
    By default ``deploy`` makes one; this one it only checks, and shows what it needs."""

    def misplaced(self, region: str | None) -> Iterator[Problem]:
        """Yield the role if it is not in the partition of the pipeline's region."""
        if self.role is None or region is None:
            return
        partition = self.role.split(":")[1]
        expected = partition_of(region)
        if partition != expected:
            yield Problem(
                "step_functions.role",
                f"{self.role} is in partition {partition}, and the pipeline runs in {region} "
                f"({expected}); name a role of an account there",
            )
