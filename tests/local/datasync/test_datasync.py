"""DataSync of the embedded AWS moves real objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws, Fault
from tests.local.conftest import wait
from tests.local.datasync.transfers import BUCKET, Transfers


@pytest.fixture(scope="module")
def transfers() -> Iterator[Transfers]:
    with EmbeddedAws(time_scale=0.002) as aws:
        yield Transfers(aws)


def test_a_task_copies_what_its_source_has(transfers: Transfers) -> None:
    transfers.put("copied/a.csv", "copied/deep/b ü.csv", "copied-not/c.csv")
    ended = transfers.ended(transfers.start(transfers.task("/copied/", "/to/copied")))
    assert ended["Status"] == "SUCCESS"
    assert transfers.keys("to/copied/") == ["to/copied/a.csv", "to/copied/deep/b ü.csv"]
    counts = [ended[f"Files{each}"] for each in ("Prepared", "Transferred", "Verified", "Skipped")]
    assert counts == [2, 2, 2, 0]
    assert ended["FilesListed"]["AtSource"] == 2
    assert ended["BytesTransferred"] == len(b"copied/a.csv") + len("copied/deep/b ü.csv".encode())
    assert set(ended["FilesFailed"].values()) == {0}


def test_a_second_execution_copies_only_what_changed(transfers: Transfers) -> None:
    transfers.put("again/a", "again/b")
    task = transfers.task("again", "to/again")
    transfers.ended(transfers.start(task))
    transfers.s3.put_object(Bucket=BUCKET, Key="again/b", Body=b"new")
    ended = transfers.ended(transfers.start(task))
    assert (ended["FilesTransferred"], ended["FilesSkipped"]) == (1, 1)
    body = transfers.s3.get_object(Bucket=BUCKET, Key="to/again/b")["Body"].read()
    assert body == b"new"


def test_filters_choose_what_is_copied(transfers: Transfers) -> None:
    transfers.put("chosen/a/1.csv", "chosen/a/2.tmp", "chosen/ab/3.csv", "chosen/c/4.csv")
    task = transfers.task(
        "chosen",
        "to/chosen",
        Includes=[{"FilterType": "SIMPLE_PATTERN", "Value": "/a*|/d"}],
        Excludes=[{"FilterType": "SIMPLE_PATTERN", "Value": "*.tmp"}],
    )
    ended = transfers.ended(transfers.start(task))
    assert transfers.keys("to/chosen/") == ["to/chosen/a/1.csv", "to/chosen/ab/3.csv"]
    # With an exclude filter, everything that the include filter lets through is listed.
    assert (ended["FilesListed"]["AtSource"], ended["FilesTransferred"]) == (3, 2)


def test_a_destination_has_its_storage_class_and_may_be_cleaned(transfers: Transfers) -> None:
    transfers.put("classed/a", "to/classed/old")
    target = transfers.location("to/classed", S3StorageClass="STANDARD_IA")
    task = transfers.task(
        "classed",
        "elsewhere",
        DestinationLocationArn=target,
        Options={"PreserveDeletedFiles": "REMOVE"},
    )
    ended = transfers.ended(transfers.start(task))
    assert ended["FilesDeleted"] == 1
    assert transfers.keys("to/classed/") == ["to/classed/a"]
    head = transfers.s3.head_object(Bucket=BUCKET, Key="to/classed/a")
    assert head["StorageClass"] == "STANDARD_IA"


def test_a_second_start_waits_in_the_queue(transfers: Transfers) -> None:
    transfers.put("queued/a")
    slow = Fault.job("queued", operation="StartTaskExecution")
    # The first copies, and then runs on until it is cancelled.
    transfers.aws.inject(replace(slow, delay_s=36_000_000))
    task = transfers.task("queued", "to/queued", Name="queued")
    first, second = transfers.start(task), transfers.start(task)
    describe = transfers.api.describe_task_execution
    wait(lambda: describe(TaskExecutionArn=first), lambda each: each["FilesTransferred"] == 1)
    assert transfers.status(second) == "QUEUED"
    assert transfers.api.describe_task(TaskArn=task)["Status"] == "RUNNING"
    transfers.api.cancel_task_execution(TaskExecutionArn=first)
    assert transfers.ended(second)["FilesSkipped"] == 1
    assert transfers.api.describe_task(TaskArn=task)["CurrentTaskExecutionArn"] == second


def test_a_cancelled_execution_ends_as_an_error(transfers: Transfers) -> None:
    transfers.put("cancelled/a")
    slow = Fault.job("slow", operation="StartTaskExecution")
    transfers.aws.inject(replace(slow, delay_s=36_000_000))
    task = transfers.task("cancelled", "to/cancelled", Name="slow")
    execution = transfers.start(task)
    wait(lambda: {"is": transfers.status(execution)}, lambda s: s["is"] == "TRANSFERRING")
    transfers.api.cancel_task_execution(TaskExecutionArn=execution)
    assert transfers.ended(execution)["Status"] == "ERROR"
    assert transfers.api.describe_task(TaskArn=task)["Status"] == "AVAILABLE"


def test_a_failure_has_its_reason(transfers: Transfers) -> None:
    transfers.put("failing/a")
    transfers.aws.inject(Fault.job("broken", operation="StartTaskExecution", reason="no route"))
    ended = transfers.ended(transfers.start(transfers.task("failing", "to/x", Name="broken")))
    assert ended["Status"] == "ERROR"
    assert ended["Result"]["ErrorDetail"] == "no route"


def test_a_bucket_of_another_account_is_written_where_its_policy_lets_the_role(
    transfers: Transfers,
) -> None:
    transfers.put("given/a", "given/b")
    theirs = transfers.aws.client("s3", account="999988887777")
    theirs.create_bucket(Bucket="theirs")

    def given(*objects: str) -> tuple[str, int]:
        allowed = {"Effect": "Allow", "Principal": {"AWS": transfers.role}, "Action": "s3:*"}
        places = ["arn:aws:s3:::theirs", *(f"arn:aws:s3:::theirs/{key}" for key in objects)]
        policy = {"Version": "2012-10-17", "Statement": [{**allowed, "Resource": places}]}
        theirs.put_bucket_policy(Bucket="theirs", Policy=json.dumps(policy))
        there = transfers.location("", S3BucketArn="arn:aws:s3:::theirs")
        task = transfers.task("given", "unused", DestinationLocationArn=there)
        ended = transfers.ended(transfers.start(task))
        return ended["Status"], ended["FilesFailed"]["Transfer"]

    assert given("a") == ("ERROR", 1)
    assert given("*") == ("SUCCESS", 0)
    copies = theirs.list_objects_v2(Bucket="theirs")["Contents"]
    assert [each["Key"] for each in copies] == ["a", "b"]


def test_keys_that_datasync_refuses_fail_the_execution(transfers: Transfers) -> None:
    transfers.put("odd/a//b", "odd/c")
    ended = transfers.ended(transfers.start(transfers.task("odd", "to/odd")))
    assert (ended["Status"], ended["FilesFailed"]["Prepare"]) == ("ERROR", 1)
    assert transfers.keys("to/odd/") == ["to/odd/c"]


def test_basic_mode_copies_to_and_from_a_file_system(transfers: Transfers) -> None:
    transfers.put("filled/a", "filled/deep/er/b ü")
    system = transfers.file_system()
    target = transfers.lustre(system, Subdirectory="/in/")
    fill = transfers.task("filled", "unused", TaskMode="BASIC", DestinationLocationArn=target)
    counts = ("FilesTransferred", "FilesSkipped", "FilesVerified", "BytesWritten")
    ended = transfers.ended(transfers.start(fill))
    # Directories count, and nothing tells what was listed.
    assert [ended[each] for each in counts] == [4, 0, 4, len("filled/afilled/deep/er/b ü") + 1]
    assert not {"FilesListed", "FilesFailed", "FilesPrepared"} & ended.keys()
    again = transfers.ended(transfers.start(fill))
    assert [again[each] for each in counts] == [0, 4, 4, 0]
    source = transfers.lustre(system, Subdirectory="/in/deep")
    back = transfers.task("unused", "to/back", TaskMode="BASIC", SourceLocationArn=source)
    assert transfers.ended(transfers.start(back))["Status"] == "SUCCESS"
    assert transfers.keys("to/back/") == ["to/back/er/b ü"]
    described = transfers.api.describe_location_fsx_lustre(LocationArn=target)
    assert described["LocationUri"] == f"fsxl://us-east-1.{system.rpartition('/')[2]}/in"
    with pytest.raises(ClientError, match="is not found"):
        transfers.api.describe_location_s3(LocationArn=target)


@pytest.mark.parametrize(("options", "kept"), [({}, 1), ({"ObjectTags": "NONE"}, 0)])
def test_tags_of_objects_come_along(
    transfers: Transfers, options: dict[str, str], kept: int
) -> None:
    transfers.put("tagged/a")
    tags = {"TagSet": [{"Key": "team", "Value": "red"}]}
    transfers.s3.put_object_tagging(Bucket=BUCKET, Key="tagged/a", Tagging=tags)
    target = f"to/tagged{kept}"
    transfers.ended(transfers.start(transfers.task("tagged", target, Options=options)))
    copied = transfers.s3.get_object_tagging(Bucket=BUCKET, Key=f"{target}/a")
    assert len(copied["TagSet"]) == kept


def test_tasks_are_listed_by_their_locations(transfers: Transfers) -> None:
    task = transfers.task("listed", "to/listed", Tags=[{"Key": "run", "Value": "1"}])
    target = transfers.api.describe_task(TaskArn=task)["DestinationLocationArn"]
    filters = [{"Name": "LocationId", "Operator": "Equals", "Values": [target]}]
    assert [t["TaskArn"] for t in transfers.api.list_tasks(Filters=filters)["Tasks"]] == [task]
    tags = transfers.api.list_tags_for_resource(ResourceArn=task)["Tags"]
    assert tags == [{"Key": "run", "Value": "1"}]
