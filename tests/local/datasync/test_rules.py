"""Every rule of DataSync that the embedded AWS enforces, broken once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.datasync.rules import REFUSED, RULES
from tests.local.datasync.transfers import GROUP, Transfers, role

POINT_IN_TIME = {"VerifyMode": "POINT_IN_TIME_CONSISTENT"}
NO_TIMES = {"Mtime": "NONE"}
REMOVE_ALL = {"PreserveDeletedFiles": "REMOVE", "TransferMode": "ALL"}
MISSING = "arn:aws:datasync:us-east-1:123456789012:location/loc-00000000000000000"
NO_SYSTEM = "arn:aws:fsx:us-east-1:123456789012:file-system/fs-00000000000000000"
NO_TASK = "arn:aws:datasync:us-east-1:123456789012:task/task-00000000000000000"


@pytest.fixture(scope="module")
def transfers() -> Iterator[Transfers]:
    with EmbeddedAws(time_scale=0.05) as aws:
        yield Transfers(aws)


def tasked(**more: Any) -> Callable[[Transfers], object]:
    return lambda transfers: transfers.task("rules", "to/rules", **more)


def located(**more: Any) -> Callable[[Transfers], object]:
    return lambda transfers: transfers.location("rules", **more)


def _untrusted(transfers: Transfers) -> None:
    other = role(transfers.aws, "NotDataSync", "sagemaker.amazonaws.com")
    transfers.location("rules", S3Config={"BucketAccessRoleArn": other})


def _theirs(transfers: Transfers) -> None:
    transfers.aws.client("s3", account="999988887777").create_bucket(Bucket="theirs")
    transfers.location("rules", S3BucketArn="arn:aws:s3:::theirs")


def _both_elsewhere(transfers: Transfers) -> None:
    place = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    transfers.s3.create_bucket(Bucket="far", **place)
    far = transfers.location("rules", S3BucketArn="arn:aws:s3:::far")
    # One end may be there, which is any one.
    for ends in ({"SourceLocationArn": far}, {"DestinationLocationArn": far}):
        transfers.task("rules", "to/rules", **ends)
    transfers.task("", "", SourceLocationArn=far, DestinationLocationArn=far)


def _location_in_use(transfers: Transfers) -> None:
    task = transfers.api.describe_task(TaskArn=transfers.task("rules", "to/rules"))
    transfers.api.delete_location(LocationArn=task["SourceLocationArn"])


def _hundred_and_one(_: Transfers) -> None:
    with EmbeddedAws() as aws:
        own = Transfers(aws)
        ends = {
            "SourceLocationArn": own.location("a"),
            "DestinationLocationArn": own.location("b"),
        }
        for _number in range(101):
            own.api.create_task(**ends)


def _deleted_while_running(transfers: Transfers) -> None:
    task = transfers.task("rules", "to/rules")
    transfers.start(task)
    transfers.api.delete_task(TaskArn=task)


def _started_twice(transfers: Transfers) -> None:
    task = transfers.task("rules", "to/rules", Options={"TaskQueueing": "DISABLED"})
    transfers.start(task)
    transfers.start(task)


def _cancelled_after_its_end(transfers: Transfers) -> None:
    execution = transfers.start(transfers.task("rules", "to/rules"))
    transfers.api.cancel_task_execution(TaskExecutionArn=execution)
    transfers.ended(execution)
    transfers.api.cancel_task_execution(TaskExecutionArn=execution)


def on_lustre(break_it: Callable[[Transfers, str], object]) -> Callable[[Transfers], object]:
    """Break a rule beside a file system that is available."""

    def broken(_: Transfers) -> object:
        with EmbeddedAws(time_scale=0.001) as aws:
            own = Transfers(aws)
            return break_it(own, own.file_system())

    return broken


def _enhanced_to_lustre(transfers: Transfers, system: str) -> None:
    transfers.task("rules", "unused", DestinationLocationArn=transfers.lustre(system))


BROKEN: dict[str, Callable[[Transfers], object]] = {
    "role exists": located(
        S3Config={"BucketAccessRoleArn": "arn:aws:iam::123456789012:role/no-such-role"}
    ),
    "role trusts DataSync": _untrusted,
    "bucket exists": located(S3BucketArn="arn:aws:s3:::no-such-bucket"),
    "bucket of another account": _theirs,
    "subdirectories": located(Subdirectory="/a//b"),
    "file system exists": lambda t: t.lustre(NO_SYSTEM),
    "file system is available": lambda t: t.lustre(t.file_system(available=False)),
    "security groups exist": on_lustre(
        lambda t, system: t.lustre(system, SecurityGroupArns=[f"{GROUP}2"])
    ),
    "directories of a file system": on_lustre(
        lambda t, system: t.lustre(system, Subdirectory="/a/../../b")
    ),
    "Enhanced mode is for S3": on_lustre(_enhanced_to_lustre),
    "locations exist": lambda t: t.api.delete_location(LocationArn=MISSING),
    "locations in use stay": _location_in_use,
    "locations of a task exist": tasked(SourceLocationArn=MISSING),
    "one location is here": _both_elsewhere,
    "100 tasks": _hundred_and_one,
    "Enhanced mode verifies what it transfers": tasked(Options=POINT_IN_TIME),
    "Enhanced mode keeps times": tasked(Options=NO_TIMES),
    "Basic mode keeps both times or none": tasked(TaskMode="BASIC", Options=NO_TIMES),
    "no deletion without a comparison": tasked(Options=REMOVE_ALL),
    "objects have no owner": tasked(Options={"Uid": "INT_VALUE"}),
    "include patterns end with the wildcard": tasked(
        Includes=[{"FilterType": "SIMPLE_PATTERN", "Value": "/a|*.csv"}]
    ),
    "schedules are not simulated": tasked(Schedule={"ScheduleExpression": "rate(1 hour)"}),
    "tasks exist": lambda t: t.start(NO_TASK),
    "running tasks stay": _deleted_while_running,
    "one execution at a time": _started_twice,
    "executions exist": lambda t: t.status(f"{NO_TASK}/execution/exec-00000000000000000"),
    "executions to cancel run": _cancelled_after_its_end,
}


def test_every_rule_is_tried() -> None:
    assert BROKEN.keys() == RULES.keys()


@pytest.mark.parametrize("rule", BROKEN)
def test_what_breaks_a_rule_is_refused(transfers: Transfers, rule: str) -> None:
    with pytest.raises(ClientError) as caught:
        BROKEN[rule](transfers)
    error, words = caught.value.response["Error"], RULES[rule].message.split("{")[0]
    assert error["Code"] == RULES[rule].error
    assert error["Message"].startswith(words)
    assert RULES[rule].source.startswith(("model: ", "guide: ", "issue: "))


@pytest.mark.parametrize(
    "kept",
    [
        tasked(Options={"VerifyMode": "ONLY_FILES_TRANSFERRED", "Uid": "NONE"}),
        tasked(TaskMode="BASIC", Options={**POINT_IN_TIME, **NO_TIMES, "Atime": "NONE"}),
        tasked(Options={"PreserveDeletedFiles": "REMOVE", "TransferMode": "CHANGED"}),
        located(Subdirectory="/a/b/", S3StorageClass="GLACIER_INSTANT_RETRIEVAL"),
    ],
)
def test_what_keeps_the_rules_is_created(
    transfers: Transfers, kept: Callable[[Transfers], object]
) -> None:
    assert str(kept(transfers)).startswith("arn:aws:datasync:")


def test_a_request_of_the_wrong_form_is_refused(transfers: Transfers) -> None:
    with pytest.raises(ClientError, match=REFUSED):
        transfers.location("100%")
