"""A version in the model registry becomes approved or rejected.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateModelPackage.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import Compare, Result
from orchestration.graph import Call, Choose, Graph, Operation
from orchestration.refs import Ref
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.registry.versions import role_problems
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.values import Text, Value

APPROVED: Final = "Approved"
REJECTED: Final = "Rejected"
PENDING: Final = "PendingManualApproval"


@dataclass(frozen=True, slots=True)
class ModelApprovalOutputs:
    """References to what a :class:`ModelApproval` gives."""

    model_package: Ref[str] = output(shown=True)
    """The ARN of the version, decided upon."""
    status: Ref[str] = output(shown=True)
    """``Approved`` or ``Rejected``."""


class ModelApproval(Stage):
    """Approves a version of the model registry, or rejects it: as a person or a figure has decided.

    After an ``approval`` with ``on_reject: go_on``, its ``approved`` decides, and its ``comment``
    is kept with the version.
    """

    kind: Literal["model_approval"] = "model_approval"
    model_package: Text
    """The version's ARN: ``{ref: register.model_package}``."""
    approved: Value = True
    """True or false, or a reference to one: ``{ref: sign_off.approved}``."""
    description: Text | None = None
    """The reason, kept with the version: ``{ref: sign_off.comment}``; 1,024 characters."""

    registry_role: Text | None = None
    """ARN of a role of the version's account that is assumed to decide, where that is another."""

    outputs: ClassVar[Outputs[ModelApprovalOutputs]] = Outputs(ModelApprovalOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from role_problems(self.registry_role)

    @override
    def lower(self, context: Context) -> Fragment:
        decided = Choose(
            name=f"{self.name}.decision",
            condition=Compare("eq", self.approved, True),
            then=Graph((self._updated("approve", APPROVED),)),
            otherwise=Graph((self._updated("reject", REJECTED),)),
            collect={"status": APPROVED},
            absent={"status": REJECTED},
        )
        return Fragment(
            steps=(decided,),
            outputs={
                "model_package": self.model_package,
                "status": Result(decided.name, "status"),
            },
        )

    def _updated(self, verb: str, status: str) -> Call:
        request: dict[str, Any] = {
            "ModelPackageArn": self.model_package,
            "ModelApprovalStatus": status,
        }
        if self.description is not None:
            request["ApprovalDescription"] = self.description
        return Call(
            name=f"{self.name}.{verb}",
            operation=Operation(
                "sagemaker", "UpdateModelPackage", request, assumes=self.registry_role
            ),
        )
