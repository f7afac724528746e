"""The roles that SageMaker's jobs and models run under: what the requests of their steps name.

The actions are those of https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, on
the places, images, keys and log groups of the steps alone. What a script opens by itself is in no
request; a role needs more for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.deploy.account import Account
from orchestration.deploy.identities.identity import Identity, identity
from orchestration.deploy.identities.places import Unknown, needs
from orchestration.deploy.identities.touched import touched
from orchestration.deploy.permissions import Runs, Statement, trust
from orchestration.deploy.permissions.patterns import ANY, Known, iam, listings, pattern
from orchestration.deploy.permissions.requests import calls, roles
from orchestration.expressions import Json
from orchestration.graph import Operation, Workflow, all_steps

SERVICE: Final = "sagemaker.amazonaws.com"
GROUPS: Final = {
    "CreateTrainingJob": ("TrainingJobs", "TrainingJobName", "/"),
    # Its training jobs have its name and more.
    "CreateHyperParameterTuningJob": ("TrainingJobs", "HyperParameterTuningJobName", "-"),
    "CreateProcessingJob": ("ProcessingJobs", "ProcessingJobName", "/"),
    "CreateTransformJob": ("TransformJobs", "TransformJobName", "/"),
}
"""By the operation: the log group, the field with the job's name, and what follows in a stream's.
https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html"""
_OF_MODELS: Final = (
    *("CreateTransformJob", "CreateEndpoint", "CreateEndpointConfig", "InvokeEndpointAsync"),
    "CreateInferenceComponent",
)
"""Operations that are done under the role of a model; a queue's requests are read under it, too.
https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-endpoint-prerequisites.html"""
_SERVING: Final = {
    "CreateEndpoint": ("Endpoints", "EndpointName"),
    "CreateInferenceComponent": ("InferenceComponents", "InferenceComponentName"),
}
"""By the operation: where the logs of what serves are, each in a group of its own."""
_MODEL: Final = "CreateModel"
_SERVICES: Final = ("sagemaker", "sagemaker-runtime")


@dataclass(frozen=True, slots=True)
class _Job:
    """A request whose job, model or endpoint runs under a role."""

    step: str
    operation: Operation
    known: Known


def identities(workflow: Workflow, account: Account, runs: Runs) -> Iterator[Identity]:
    """Yield the role of each job of a workflow; jobs of one role share an identity."""
    needed: dict[str, list[Statement]] = {}
    notes: dict[str, dict[str, None]] = {}
    for parameters in runs:
        for job, role in _jobs(workflow, parameters):
            statements, unknown = _needed(job, account)
            needed.setdefault(role, []).extend(statements)
            values = (
                f"parameter {name!r} has no value, so anything that it names is allowed"
                for name in sorted(job.known.missing)
            )
            notes.setdefault(role, {}).update(dict.fromkeys([*unknown, *values]))
    for role, statements in needed.items():
        yield identity(
            "jobs",
            role.replace(ANY, "*"),
            statements,
            trust=trust(account, {SERVICE: account.arn("sagemaker", "*")}),
            notes=tuple(notes[role]),
        )


def _jobs(workflow: Workflow, parameters: Mapping[str, Json]) -> Iterator[tuple[_Job, str]]:
    steps = {step.name: step for step in all_steps(workflow.graph)}
    known = Known(parameters=parameters, listings=listings(workflow.graph), steps=steps)
    every = [
        _Job(step, operation, inside)
        for step, operation, inside in calls(workflow.graph, known)
        if operation.service in _SERVICES and operation.name in {_MODEL, *GROUPS, *_OF_MODELS}
    ]
    models = [role for job in every if job.operation.name == _MODEL for role in _roles(job)]
    for job in every:
        own = models if job.operation.name in _OF_MODELS else _roles(job)
        for role in dict.fromkeys(own):
            yield job, role


def _roles(job: _Job) -> Iterator[str]:
    return (pattern(role, job.known) for role in roles(job.operation.request))


def _needed(job: _Job, account: Account) -> tuple[list[Statement], list[str]]:
    statements, unknown = list(_told(job, account)), []
    for touch in touched(job.operation.request):
        try:
            statements += needs(touch, job.known, account)
        except Unknown as error:
            unknown.append(f"{job.step}: {error}")
    return [each.by(job.step) for each in statements], unknown


def _told(job: _Job, account: Account) -> Iterator[Statement]:
    """Yield what a job needs to write its log and its metrics."""
    name = job.operation.name
    if name in _SERVING:
        kind, field = _SERVING[name]
        served = iam(pattern(job.operation.request[field], job.known))
        yield from _logs(account, f"/aws/sagemaker/{kind}/{served}", "*")
        yield _metrics(f"/aws/sagemaker/{kind}")
    elif name in GROUPS:
        group, field, following = GROUPS[name]
        stream = iam(pattern(job.operation.request[field], job.known) + following + ANY)
        yield from _logs(account, f"/aws/sagemaker/{group}", stream)
        yield _metrics(f"/aws/sagemaker/{group}")


def _logs(account: Account, group: str, stream: str) -> Iterator[Statement]:
    arn = account.arn("logs", f"log-group:{group}")
    whole = frozenset([arn, f"{arn}:*"])
    yield Statement(
        "FindLogs", frozenset(["logs:CreateLogGroup", "logs:DescribeLogStreams"]), whole
    )
    yield Statement(
        "WriteLogs",
        frozenset(["logs:CreateLogStream", "logs:PutLogEvents"]),
        frozenset([f"{arn}:log-stream:{stream}"]),
    )


def _metrics(namespace: str) -> Statement:
    return Statement(
        "WriteMetrics",
        frozenset(["cloudwatch:PutMetricData"]),
        frozenset(["*"]),
        (("StringEquals", "cloudwatch:namespace", frozenset([namespace])),),
    )
