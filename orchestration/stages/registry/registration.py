"""Registration of a model as a version of a group in SageMaker's model registry.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModelPackage.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import (
    Compare,
    Function,
    Result,
    Tree,
    apply,
    join,
    run_id,
)
from orchestration.expressions.scalars import text
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Operation,
    Output,
    Require,
    Step,
    Until,
)
from orchestration.refs import Expression, Ref
from orchestration.stages.endpoints import identity
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.registry.decision import APPROVED, PENDING
from orchestration.stages.registry.versions import (
    MOST_LISTED,
    is_elsewhere,
    permissions,
    role_problems,
)
from orchestration.stages.serving.containers import SequenceFields
from orchestration.stages.serving.model import ServedModel
from orchestration.stages.stage import SAMPLE, Context, Fragment
from orchestration.stages.values import (
    Condition,
    Extra,
    ExtraRequest,
    Model,
    Text,
    Value,
    s3_problem,
)

_EXISTS: Final = ErrorPattern("ValidationException", "already exists")
_OWN_METADATA: Final = "orchestration:"
_DESCRIPTION: Final = "ModelPackageDescription"
_ARN: Final = "ModelPackageArn"
_ACTIONS: Final = ("sagemaker:CreateModelPackage", "sagemaker:DescribeModelPackage")
_POLL_S: Final = 15
_COMPLETED_S: Final = 3600


class RegistrationRequests(Model):
    """Further fields of the requests of a registration, as AWS names them."""

    CreateModelPackageGroup: Extra = {}
    """Of the group, where it does not exist yet."""
    CreateModelPackage: Extra = {}
    """Of the version."""

    def merged(self, operation: str, request: dict[str, Any]) -> Operation:
        """Return an operation with its further fields; ``ValueError`` for one that is set."""
        whole = ExtraRequest.merged(request, getattr(self, operation), operation)
        return Operation("sagemaker", operation, whole)


@dataclass(frozen=True, slots=True)
class ModelRegistrationOutputs:
    """References to what a :class:`ModelRegistration` gives."""

    model_package: Ref[str] = output(shown=True)
    """The version's ARN."""
    version: Ref[int] = output(shown=True)
    """Its number in the group."""
    status: Ref[str] = output(shown=True)
    """``Approved`` or ``PendingManualApproval``, or what has been decided since."""


class ModelRegistration(SequenceFields):
    """Registers a model as the next version of a group, which is created where there is none.

    A run registers a model once: what runs again finds the version that it has made, by the run and
    by what the model is made of.
    """

    kind: Literal["model_registration"] = "model_registration"
    package_group: Text
    """The model package group: its name, or its ARN where it belongs to another account (and must
    exist)."""
    registry_role: Text | None = None
    """ARN of a role of the group's account that is assumed to register, where the group's policy
    does not let this account."""
    model_data: Text
    """S3 URI of a directory with the model's files (``evaluate.outputs.best_checkpoint``), or of a
    ``model.tar.gz`` (``model_archive: true``)."""
    model_archive: bool = False
    """``model_data`` is a ``model.tar.gz``, not a directory."""
    image: Text
    """The inference container, by its registry path."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Variables of the model's container."""
    content_types: tuple[Text, ...] = ("application/json",)
    """Content types of requests to its endpoints."""
    response_types: tuple[Text, ...] = ("application/json",)
    """Content types of the answers."""
    instance_types: tuple[Text, ...] = ()
    """The machines it is meant for behind an endpoint."""
    transform_instance_types: tuple[Text, ...] = ()
    """The machines it is meant for in a batch transform."""
    description: str = Field(default="", max_length=500)
    """Words for people."""
    report: Text | None = None
    """S3 URI of a JSON document with the model's metrics: ``{ref: evaluate.report_data}``."""
    training_job: Text | None = None
    """The job that has made it: ``{ref: train.job_name}``."""
    code_digest: Text | None = None
    """The digest of the training code: ``{ref: train.code_digest}``."""
    data_fingerprint: Text | None = None
    """The fingerprint of the training data: ``{ref: stage.fingerprint}``."""
    metadata: dict[str, Value] = Field(default={}, max_length=40)
    """Further properties, kept as text: ``{accuracy: {ref: evaluate.best_metric}}``."""
    approval: Literal["pending", "approved"] = "pending"
    """The status of the new version."""
    approve_when: Condition | None = None
    """The condition under which a version is approved at once that would be pending otherwise:
    ``{at_least: [{ref: evaluate.best_metric}, 0.97]}``."""
    extra_request: RegistrationRequests = RegistrationRequests()
    """Further fields, by operation: ``{CreateModelPackage: {…}}``."""

    outputs: ClassVar[Outputs[ModelRegistrationOutputs]] = Outputs(ModelRegistrationOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from s3_problem("model_data", self.model_data)
        yield from role_problems(self.registry_role, self.package_group)
        yield from self.problems_of_sequence()
        if self.report is not None:
            yield from s3_problem("report", self.report)
        if self.approve_when is not None and self.approval == "approved":
            yield Problem("approve_when", "every version is approved; remove this or approval")
        for key in self.metadata:
            if key.startswith(_OWN_METADATA):
                yield Problem(f"metadata.{key}", f"names with {_OWN_METADATA} are the stage's own")
        try:
            self.lower(SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @override
    def lower(self, context: Context) -> Fragment:
        looks, content = self.fingerprint(self.model_data, is_archive=self.model_archive)
        if self.model_archive or len(looks) > 1:
            # An ETag is in quotes, which metadata may not hold.
            content = apply(Function.HASH, content)
        status, rules = self._status()
        request = self._request(context, content, status)
        mark = identity.named_after("", join(run_id(), " ", content), [request])
        words = join(f"{self.description} " if self.description else "", "[", mark, "]")
        found = () if self.model_archive else (self._found(looks[0].name),)
        before = in_order(*self._group(context), *looks, *found, *rules, self._look())
        made = self._version(request, mark, words)
        settled = self._settled(made.name)
        outputs: dict[str, Tree] = {
            "model_package": Result(made.name, "arn"),
            "version": Result(settled.name, "version"),
            "status": Result(settled.name, "status"),
        }
        needs = permissions(self.package_group, *_ACTIONS) if self.registry_role is None else ()
        return Fragment(steps=(*before, made, settled), outputs=outputs, permissions=needs)

    def _found(self, listed: str) -> Require:
        return Require(
            name=f"{self.name}.found",
            condition=Compare("gt", Result(listed, "count"), 0),
            error="DataNotUsable",
            cause=join(f"stage {self.name} found no model below ", self.model_data),
        )

    def _group(self, context: Context) -> tuple[Call, ...]:
        """Return the call that creates the group, unless it belongs to another account."""
        if self.registry_role is not None or is_elsewhere(self.package_group):
            return ()
        # The group outlives every run: it has no tag of one.
        tags = [tag for tag in context.tag_list(self.name) if not _is_of_run(tag)]
        request = {"ModelPackageGroupName": self.package_group, "Tags": tags}
        create = Call(
            name=f"{self.name}.group",
            operation=self.extra_request.merged("CreateModelPackageGroup", request),
            adopt=Adopt(exists=_EXISTS),
        )
        return (create,)

    def _status(self) -> tuple[Tree, tuple[Step, ...]]:
        """Return the approval status of a new version, and the step that decides it by the rule."""
        if self.approve_when is None:
            return (APPROVED if self.approval == "approved" else PENDING), ()
        rule = Choose(
            name=f"{self.name}.rule",
            condition=self.approve_when,
            then=Graph(),
            otherwise=Graph(),
            collect={"status": APPROVED},
            absent={"status": PENDING},
        )
        return Result(rule.name, "status"), (rule,)

    def _request(self, context: Context, content: Text, status: Tree) -> dict[str, Any]:
        """Return ``CreateModelPackage``'s request but for what says whose it is."""
        served = ServedModel(
            data=self.model_data,
            is_archive=self.model_archive,
            image=self.image,
            environment=self.environment,
        )
        specification = {
            "Containers": self.around(served, context, None).containers(context),
            "SupportedContentTypes": list(self.content_types),
            "SupportedResponseMIMETypes": list(self.response_types),
            "SupportedRealtimeInferenceInstanceTypes": list(self.instance_types),
            "SupportedTransformInstanceTypes": list(self.transform_instance_types),
        }
        request: dict[str, Any] = {
            "ModelPackageGroupName": self.package_group,
            "InferenceSpecification": {key: each for key, each in specification.items() if each},
            "ModelApprovalStatus": status,
            "CustomerMetadataProperties": self._metadata(context, content),
        }
        if self.report is not None:
            report = {"ContentType": "application/json", "S3Uri": self.report}
            request["ModelMetrics"] = {"ModelQuality": {"Statistics": report}}
        if self.training_job is not None:
            request["MetadataProperties"] = {"GeneratedBy": self.training_job}
        return request

    def _metadata(self, context: Context, content: Text) -> dict[str, Tree]:
        own: dict[str, Tree] = {
            "pipeline": context.pipeline,
            "stage": self.name,
            "run": run_id(),
            "model_fingerprint": content,
            "training_job": self.training_job,
            "code_digest": self.code_digest,
            "data_fingerprint": self.data_fingerprint,
        }
        return {
            **{f"{_OWN_METADATA}{key}": each for key, each in own.items() if each is not None},
            **{key: _as_text(value) for key, value in self.metadata.items()},
        }

    def _look(self) -> Call:
        """Return the call that lists the newest versions, one of which may be this run's."""
        request = {
            "ModelPackageGroupName": self.package_group,
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
            "MaxResults": MOST_LISTED,
        }
        return Call(
            name=f"{self.name}.look",
            operation=self._as_role(Operation("sagemaker", "ListModelPackages", request)),
            outputs={
                "versions": Output(
                    ("ModelPackageSummaryList",),
                    kind="list",
                    columns=(_ARN, _DESCRIPTION),
                    texts=(_ARN,),
                )
            },
        )

    def _version(
        self, request: dict[str, Any], mark: Expression[str], words: Expression[str]
    ) -> Choose:
        """Return the step that creates the version, unless this run has."""
        versions = Result(f"{self.name}.look", "versions")
        own = apply(Function.WHERE, versions, _DESCRIPTION, "eq", words)
        create = Call(
            name=f"{self.name}.create",
            # A token alone would not do: nobody says for how long it is remembered.
            operation=self._as_role(
                self.extra_request.merged(
                    "CreateModelPackage",
                    {**request, _DESCRIPTION: words, "ClientToken": join("run-", mark)},
                )
            ),
            outputs={"arn": Output((_ARN,), kind="string")},
        )
        return Choose(
            name=f"{self.name}.version",
            condition=Compare("eq", apply(Function.COUNT, own), 0),
            then=Graph((create,)),
            otherwise=Graph(),
            collect={"arn": Result(create.name, "arn")},
            absent={"arn": apply(Function.LISTED, own, _ARN)},
        )

    def _as_role(self, operation: Operation) -> Operation:
        return replace(operation, assumes=self.registry_role)

    def _settled(self, made: str) -> Call:
        package = {"ModelPackageName": Result(made, "arn")}
        describe = self._as_role(Operation("sagemaker", "DescribeModelPackage", package))
        return Call(
            name=f"{self.name}.settled",
            operation=describe,
            until=Until(
                poll=describe,
                status=("ModelPackageStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Deleting"]),
                interval_s=_POLL_S,
                timeout_s=_COMPLETED_S,
                outputs={
                    "version": Output(("ModelPackageVersion",), kind="number"),
                    "status": Output(("ModelApprovalStatus",), kind="string"),
                },
            ),
        )


def in_order(*steps: Step) -> tuple[Step, ...]:
    """Return steps each of which waits for the one before it."""
    pairs = zip(steps[1:], steps, strict=False)
    return (*steps[:1], *(replace(step, after=(before.name,)) for step, before in pairs))


def _is_of_run(tag: Tree) -> bool:
    return isinstance(tag, dict) and tag.get("Key") in ("orchestration:run", "orchestration:stage")


def _as_text(value: Value) -> Tree:
    return apply(Function.TEXT, value) if isinstance(value, Expression) else text(value)
