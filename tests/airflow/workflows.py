"""Hand-built steps and workflows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestration.expressions import Json, Result, Tree, join, run_id
from orchestration.graph import (
    Adopt,
    Alternative,
    Call,
    ErrorPattern,
    Fallback,
    Graph,
    Guarded,
    Operation,
    Output,
    ParameterSpec,
    Retry,
    Step,
    Until,
    Workflow,
    upstream,
)


def training(name: str, *, job: Tree | None = None, timeout_s: float = 3600, **fields: Any) -> Call:
    """A step that trains; its job is called after it and the run unless ``job`` says otherwise."""
    named = join(name.replace(".", "-"), "-", run_id()) if job is None else job
    after = fields.pop("after", ())
    return Call(
        name=name,
        operation=Operation(
            "sagemaker",
            "CreateTrainingJob",
            {
                "TrainingJobName": named,
                "RoleArn": "arn:aws:iam::123456789012:role/trainer",
                "AlgorithmSpecification": {"TrainingInputMode": "File", "TrainingImage": "image"},
                "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
                "ResourceConfig": {
                    "InstanceType": "ml.m5.xlarge",
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 10,
                },
                "StoppingCondition": {"MaxRuntimeInSeconds": 100},
                **fields,
            },
        ),
        until=Until(
            poll=Operation("sagemaker", "DescribeTrainingJob", {"TrainingJobName": named}),
            status=("TrainingJobStatus",),
            success=frozenset({"Completed"}),
            failure=frozenset({"Failed", "Stopped"}),
            reason=("FailureReason",),
            absent=(
                ErrorPattern("ValidationException", "not found"),
                ErrorPattern("ResourceNotFound"),
            ),
            timeout_s=timeout_s,
            stop=Operation("sagemaker", "StopTrainingJob", {"TrainingJobName": named}),
            outputs={
                "arn": Output(("TrainingJobArn",), kind="string"),
                "artifacts": Output(("ModelArtifacts", "S3ModelArtifacts")),
                "started": Output(("CreationTime",)),
                "metrics": Output(
                    ("FinalMetricDataList",), kind="list", columns=("MetricName", "Value")
                ),
                "spot": Output(("EnableManagedSpotTraining",), default=False),
            },
        ),
        adopt=Adopt(exists=ErrorPattern("ResourceInUse"), name_field="TrainingJobName"),
        retry=Retry(attempts=3, interval_s=1),
        after=after,
    )


CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."
QUOTA = "The account-level service limit 'ml.p5.48xlarge for training job usage' is 0 Instances"


def falling_back(name: str, **fields: Any) -> Call:
    """A step that trains on one kind of machine, or else on two others.

    Its jobs are ``base`` on ml.p5.48xlarge, ``base-b`` on ml.p4d.24xlarge, ``base-c`` on
    ml.g5.48xlarge.
    """
    jobs = {"base": "p5.48xlarge", "base-b": "p4d.24xlarge", "base-c": "g5.48xlarge"}
    asked = [
        training(name, job=job, ResourceConfig=_machines(machines), **fields)
        for job, machines in jobs.items()
    ]
    others = zip(asked[1:], list(jobs.values())[1:], strict=True)
    return replace(
        asked[0],
        fallback=Fallback(
            label="1 x ml.p5.48xlarge",
            alternatives=tuple(_alternative(call, machines) for call, machines in others),
            reasons=("CapacityError",),
            refusals=(ErrorPattern("ResourceLimitExceeded", "training job usage"),),
        ),
    )


def _machines(machines: str) -> dict[str, Json]:
    return {"InstanceType": f"ml.{machines}", "InstanceCount": 1, "VolumeSizeInGB": 10}


def _alternative(call: Call, machines: str) -> Alternative:
    until: Any = call.until
    return Alternative(
        label=f"1 x ml.{machines}", operation=call.operation, poll=until.poll, stop=until.stop
    )


def file_system(name: str, body: Graph) -> Guarded:
    """A file system around a body."""
    acquire = f"{name}.create"
    identity = Result(acquire, "id")
    return Guarded(
        name=name,
        acquire=Call(
            name=acquire,
            operation=Operation(
                "fsx",
                "CreateFileSystem",
                {
                    "FileSystemType": "LUSTRE",
                    "StorageCapacity": 1200,
                    "SubnetIds": ["subnet-0123456789abcdef0"],
                },
            ),
            outputs={"id": Output(("FileSystem", "FileSystemId"))},
        ),
        body=_after(_available(f"{acquire}_ready", identity), body),
        cleanup=Graph(
            (
                Call(
                    name=f"{name}.delete",
                    operation=Operation("fsx", "DeleteFileSystem", {"FileSystemId": identity}),
                    until=_lifecycle(
                        identity, success=set(), failure={"FAILED"}, gone="FileSystemNotFound"
                    ),
                ),
            )
        ),
    )


def _available(name: str, identity: Tree) -> Call:
    until = _lifecycle(identity, success={"AVAILABLE"}, failure={"FAILED"})
    return Call(name=name, operation=until.poll, until=until)


def _after(first: Call, body: Graph) -> Graph:
    before = upstream(body)
    later = (s if before[s.name] else replace(s, after=(*s.after, first.name)) for s in body.steps)
    return Graph((first, *later))


def _lifecycle(
    identity: Tree, *, success: set[str], failure: set[str], gone: str | None = None
) -> Until:
    return Until(
        poll=Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [identity]}),
        status=("FileSystems", 0, "Lifecycle"),
        success=frozenset(success),
        failure=frozenset(failure),
        gone=None if gone is None else ErrorPattern(gone),
    )


def workflow(
    *steps: Step,
    outputs: Mapping[str, Tree] | None = None,
    parameters: Mapping[str, Json] | None = None,
    name: str = "hand_built",
) -> Workflow:
    """A workflow of steps; parameters by their defaults."""
    kinds = {str: "string", bool: "boolean", int: "number", float: "number"}
    specs: list[Any] = [
        {"name": key, "type": kinds[type(default)], "default": default}
        for key, default in (parameters or {}).items()
    ]
    return Workflow(
        name=name,
        graph=Graph(steps),
        outputs=outputs or {},
        parameters=tuple(ParameterSpec(**spec) for spec in specs),
    )
