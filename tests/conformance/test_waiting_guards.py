"""What a stage from outside acquires and waits for is released, also if the wait fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from orchestration import Pipeline
from orchestration.expressions import Result
from orchestration.graph import Call, ErrorPattern, Graph, Operation, Output, Recovery, Until
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.refs import Ref
from orchestration.stages import Context, Fragment, Outputs, Stage
from orchestration.stages.stage import Guard
from tests.conformance import normal
from tests.conformance.test_conformance import BACKENDS

pytestmark = pytest.mark.slow

SYSTEM = ("FileSystems", 0)


@dataclass(frozen=True)
class ShareOutputs:
    mount_name: Ref[str]


class Share(Stage):
    """A file system that is waited for by the very call that creates it."""

    kind: Literal["share"] = "share"
    refused: str = "FAILED"
    """The state that is taken for a failure."""
    outputs: ClassVar[Outputs[Any]] = Outputs(ShareOutputs)

    def lower(self, context: Context) -> Fragment:
        return Fragment(
            steps=(),
            guard=Guard(acquire=self.create(context), cleanup=Graph((self.delete(),))),
            outputs={"mount_name": Result(f"{self.name}.create", "mount_name")},
        )

    def create(self, context: Context) -> Call:
        system = Result(f"{self.name}.create", "id")
        poll = Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [system]})
        return Call(
            name=f"{self.name}.create",
            operation=Operation(
                "fsx",
                "CreateFileSystem",
                {
                    "ClientRequestToken": context.resource_name(self.name),
                    "FileSystemType": "LUSTRE",
                    "StorageCapacity": 1200,
                    "SubnetIds": ["subnet-0123456789abcdef0"],
                    "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
                },
            ),
            outputs={"id": Output(("FileSystem", "FileSystemId"), kind="string")},
            until=Until(
                poll=poll,
                status=(*SYSTEM, "Lifecycle"),
                success=frozenset(["AVAILABLE"]) - {self.refused},
                failure=frozenset([self.refused]),
                outputs={
                    "mount_name": Output(
                        (*SYSTEM, "LustreConfiguration", "MountName"), kind="string"
                    )
                },
            ),
        )

    def delete(self) -> Call:
        system = Result(f"{self.name}.create", "id")
        return Call(
            name=f"{self.name}.delete",
            operation=Operation("fsx", "DeleteFileSystem", {"FileSystemId": system}),
            recoveries=(Recovery(ErrorPattern("FileSystemNotFound"), {}),),
        )


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as embedded:
        embedded.client("s3").create_bucket(Bucket="bucket")
        yield embedded


def pipeline(name: str, refused: str) -> Pipeline:
    """Return a pipeline with a stage that reads what the wait for its file system tells."""
    body = {"name": {"ref": "share.mount_name"}}
    record = {
        "kind": "aws_call",
        "service": "s3",
        "operation": "PutObject",
        "request": {"Bucket": "bucket", "Key": "mounted", "Body": body},
    }
    return Pipeline.parse(
        {
            "name": name,
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "stages": {"share": {"kind": "share", "refused": refused}, "record": record},
        },
        stages=[Share],
    )


@pytest.mark.parametrize(("refused", "error"), [("FAILED", None), ("AVAILABLE", "JobFailed")])
def test_nothing_stays_whatever_the_wait_comes_to(
    refused: str, error: str | None, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    made = pipeline(f"share-{refused.lower()}", refused)
    first, *others = (
        run(made, on=on, aws=aws, airflow=airflow, run_id=f"{refused}-{on}") for on in BACKENDS
    )
    assert first.error == error
    created = {"fsx:CreateFileSystem", "fsx:DeleteFileSystem"}
    for report in (first, *others):
        assert (report.state, report.error) == (first.state, first.error)
        assert normal.anonymous(report.cause) == normal.anonymous(first.cause)
        sent = [call for call in report.calls if call.error_code is None]
        changes = [f"{call.service}:{call.operation}" for call in sent]
        assert sorted(change for change in changes if change in created) == sorted(created)
        assert any(call.request.get("Key") == "mounted" for call in sent) == (error is None)
    left = aws.state()["fsx"]["FileSystems"].values()
    assert {system["Lifecycle"] for system in left} <= {"DELETING"}
