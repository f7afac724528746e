"""Steps and workflows to render, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestration.expressions import Field, Item, Result, Tree, join, parameter
from orchestration.graph import (
    Adopt,
    Call,
    ErrorPattern,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Output,
    ParameterSpec,
    Read,
    Recovery,
    Step,
    Until,
    Workflow,
    upstream,
)
from orchestration.refs import Expression

BUCKET = "rendered-bucket"
NOT_FOUND = ErrorPattern("FileSystemNotFound")
LIFECYCLE = ("FileSystems", 0, "Lifecycle")


def workflow(*steps: Step, outputs: dict[str, Tree] | None = None, **more: Any) -> Workflow:
    return Workflow(name="made-by-hand", graph=Graph(steps), outputs=outputs or {}, **more)


def put(name: str, body: Tree = "x", *, key: Tree | None = None, **more: Any) -> Call:
    """Write an object; its key is the step's name."""
    # An object: Step Functions would put text into quotes.
    request: dict[str, Tree] = {
        "Bucket": BUCKET,
        "Key": name if key is None else key,
        "Body": {"value": body},
    }
    return Call(
        name=name,
        operation=Operation("s3", "PutObject", request),
        outputs={"etag": Output(("ETag",), kind="string")},
        **more,
    )


def read(name: str, key: str | Expression[object], outputs: dict[str, Output], **more: Any) -> Read:
    return Read(name=name, uri=join("s3://", BUCKET, "/", key), outputs=outputs, **more)


def failing(name: str, **more: Any) -> Call:
    """Read an object that is not there."""
    request = {"Bucket": BUCKET, "Key": f"missing/{name}"}
    return Call(name=name, operation=Operation("s3", "GetObject", request), **more)


def endpoint_status(name: str, endpoint: Tree) -> Call:
    """Ask for an endpoint that may be there."""
    absent = ErrorPattern("ValidationException", "Could not find endpoint")
    return Call(
        name=name,
        operation=Operation("sagemaker", "DescribeEndpoint", {"EndpointName": endpoint}),
        outputs={"status": Output(("EndpointStatus",), kind="string")},
        recoveries=(Recovery(absent, {"status": "Absent {% 1 %}"}),),
    )


def model(name: str, model_name: Tree) -> Call:
    """Create a model, or find the one that an earlier try made."""
    exists = ErrorPattern("ValidationException", "already existing")
    request: dict[str, Tree] = {
        "ModelName": model_name,
        "ExecutionRoleArn": "arn:aws:iam::123456789012:role/pipeline",
        "PrimaryContainer": {"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/serve:1"},
    }
    return Call(
        name=name,
        operation=Operation("sagemaker", "CreateModel", request),
        adopt=Adopt(exists=exists, name_field="ModelName"),
    )


def file_system(name: str, **until: Any) -> Call:
    """Make a file system and wait until it is there."""
    request: dict[str, Tree] = {
        "ClientRequestToken": join(name.replace(".", "-"), "-", parameter("token")),
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": ["subnet-0123456789abcdef0"],
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
    }
    identifier = Result(name, "identifier")
    poll = Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [identifier]})
    settings = {
        "poll": poll,
        "status": LIFECYCLE,
        "success": frozenset(["AVAILABLE"]),
        "failure": frozenset(["FAILED"]),
        "outputs": {"mount_name": Output((*LIFECYCLE[:2], "LustreConfiguration", "MountName"))},
        **until,
    }
    return Call(
        name=name,
        operation=Operation("fsx", "CreateFileSystem", request),
        outputs={"identifier": Output(("FileSystem", "FileSystemId"), kind="string")},
        until=Until(**settings),
    )


def deletion(name: str, identifier: Tree) -> Call:
    """Delete a file system and wait until it is gone."""
    described = Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [identifier]})
    return Call(
        name=name,
        operation=Operation("fsx", "DeleteFileSystem", {"FileSystemId": identifier}),
        recoveries=(Recovery(NOT_FOUND, {}),),
        until=Until(
            poll=described,
            status=LIFECYCLE,
            success=frozenset(),
            failure=frozenset(["FAILED"]),
            gone=NOT_FOUND,
        ),
    )


TOKEN = ParameterSpec(name="token", default="t1")


def guarded(name: str, body: Graph, **more: Any) -> Guarded:
    """A file system around a body."""
    made = file_system(f"{name}.create")
    until = made.until
    assert until is not None
    ready = Call(name=f"{made.name}_ready", operation=until.poll, until=until)
    before = upstream(body)
    later = (s if before[s.name] else replace(s, after=(*s.after, ready.name)) for s in body.steps)
    acquire, body = replace(made, until=None), Graph((ready, *later))
    cleanup = Graph((deletion(f"{name}.delete", Result(f"{name}.create", "identifier")),))
    return Guarded(name=name, acquire=acquire, body=body, cleanup=cleanup, **more)


def loop(name: str, items: Tree, *more: Step, **settings: Any) -> ForEach:
    """Write an object for each of a list of objects with a ``key``."""
    key = Field(Item(), "key")
    return ForEach(
        name=name,
        items=items,
        body=Graph((put(f"{name}.put", key, key=join(name, "/", key)), *more)),
        collect={"key": key, "etag": Result(f"{name}.put", "etag")},
        **{"max_concurrency": 2, **settings},
    )
