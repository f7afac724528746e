"""FSx for Lustre: life cycle, associations with S3, mounts of training jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.conftest import (
    BUCKET,
    finished_training,
    prepare,
    put,
    read,
    tar_gz,
    training_request,
    wait,
)

SCRIPT = """
    import os, pathlib
    data = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"])
    text = (data / "deep" / "a.txt").read_text()
    (data / "out.txt").write_text(text.upper())
"""


def _create(aws: EmbeddedAws, token: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = aws.client("fsx").create_file_system(
        ClientRequestToken=token,
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=["subnet-0123456789abcdef0"],
        FileSystemTypeVersion="2.15",
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        **more,
    )["FileSystem"]
    return found


def _available(aws: EmbeddedAws, identifier: str) -> dict[str, Any]:
    return wait(
        lambda: aws.client("fsx").describe_file_systems(FileSystemIds=[identifier])["FileSystems"][
            0
        ],
        lambda system: system["Lifecycle"] == "AVAILABLE",
    )


def _association(aws: EmbeddedAws, identifier: str) -> dict[str, Any]:
    made = aws.client("fsx").create_data_repository_association(
        FileSystemId=identifier,
        FileSystemPath="/data",
        DataRepositoryPath=f"s3://{BUCKET}/lustre",
        BatchImportMetaDataOnCreate=True,
    )["Association"]
    assert made["Lifecycle"] == "CREATING"
    return wait(
        lambda: aws.client("fsx").describe_data_repository_associations(
            AssociationIds=[made["AssociationId"]]
        )["Associations"][0],
        lambda one: one["Lifecycle"] == "AVAILABLE",
    )


def test_a_file_system_lives_is_trained_on_and_goes(aws: EmbeddedAws) -> None:
    fsx = aws.client("fsx")
    created = _create(aws, "life")
    assert created["Lifecycle"] == "CREATING"
    identifier = created["FileSystemId"]
    mount = _available(aws, identifier)["LustreConfiguration"]["MountName"]
    put(aws, "lustre/deep/a.txt", "hello")
    _association(aws, identifier)

    job = _train(aws, "on-lustre", identifier, f"/{mount}/data")
    assert job["TrainingJobStatus"] == "Completed", aws.logs("on-lustre")

    task = fsx.create_data_repository_task(
        FileSystemId=identifier,
        Type="EXPORT_TO_REPOSITORY",
        Paths=["data"],
        Report={"Enabled": False},
    )["DataRepositoryTask"]
    done = wait(
        lambda: fsx.describe_data_repository_tasks(TaskIds=[task["TaskId"]])["DataRepositoryTasks"][
            0
        ],
        lambda one: one["Lifecycle"] in ("SUCCEEDED", "FAILED"),
    )
    assert (done["Lifecycle"], done["Status"]["SucceededCount"]) == ("SUCCEEDED", 1)
    assert read(aws, "lustre/out.txt") == b"HELLO"

    assert fsx.delete_file_system(FileSystemId=identifier)["Lifecycle"] == "DELETING"
    wait(
        lambda: aws.state()["fsx"],
        lambda state: (
            identifier not in state["FileSystems"] and not state["DataRepositoryAssociations"]
        ),
    )
    with pytest.raises(fsx.exceptions.FileSystemNotFound):
        fsx.describe_file_systems(FileSystemIds=[identifier])


def _train(aws: EmbeddedAws, name: str, identifier: str, path: str) -> dict[str, Any]:
    script = put(aws, "code/lustre.tar.gz", tar_gz({"train.py": SCRIPT}))
    source = {
        "FileSystemId": identifier,
        "FileSystemType": "FSxLustre",
        "DirectoryPath": path,
        "FileSystemAccessMode": "rw",
    }
    request = training_request(
        name,
        script,
        InputDataConfig=[{"ChannelName": "train", "DataSource": {"FileSystemDataSource": source}}],
        VpcConfig={
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
            "Subnets": ["subnet-0123456789abcdef0"],
        },
    )
    aws.client("sagemaker").create_training_job(**request)
    return finished_training(aws, name)


def test_a_wrong_mount_name_fails_the_job(aws: EmbeddedAws) -> None:
    identifier = _create(aws, "wrong-mount")["FileSystemId"]
    _available(aws, identifier)
    job = _train(aws, "wrong-mount", identifier, "/not-its-name/data")
    assert "does not begin with the mount name" in job["FailureReason"]
    aws.client("fsx").delete_file_system(FileSystemId=identifier)


def test_the_same_token_makes_one_file_system(aws: EmbeddedAws) -> None:
    first = _create(aws, "same")
    assert _create(aws, "same")["FileSystemId"] == first["FileSystemId"]
    with pytest.raises(ClientError, match="IncompatibleParameterError"):
        _create(aws, "same", StorageType="HDD")
    aws.client("fsx").delete_file_system(FileSystemId=first["FileSystemId"])


def _task(aws: EmbeddedAws, identifier: str) -> dict[str, Any]:
    tasks = aws.client("fsx").describe_data_repository_tasks(
        Filters=[{"Name": "file-system-id", "Values": [identifier]}]
    )["DataRepositoryTasks"]
    return {} if not tasks else dict(tasks[-1])


def test_files_appear_when_the_import_is_over_and_not_when_the_link_is_available(
    aws: EmbeddedAws,
) -> None:
    identifier = _create(aws, "imports")["FileSystemId"]
    _available(aws, identifier)
    for key in ("lustre/a", "lustre/a/b", "lustre/c", "lustre/d/"):
        put(aws, key, "x")
    link = _association(aws, identifier)["AssociationId"]
    task = wait(lambda: _task(aws, identifier), bool)
    assert task["Type"] == "IMPORT_METADATA_FROM_REPOSITORY"
    ended = wait(lambda: _task(aws, identifier), lambda t: "EndTime" in t)
    # An object cannot be a file and a directory; directories are not counted.
    counts = {"TotalCount": ended["Status"]["SucceededCount"] + 1, "FailedCount": 1}
    assert counts.items() <= ended["Status"].items()
    assert ended["Lifecycle"] == "FAILED"
    filters = [{"Name": "data-repository-association-id", "Values": [link]}]
    found = aws.client("fsx").describe_data_repository_tasks(Filters=filters)
    assert [each["TaskId"] for each in found["DataRepositoryTasks"]] == [ended["TaskId"]]
    aws.client("fsx").delete_file_system(FileSystemId=identifier)


def test_a_bucket_of_another_account_is_linked_where_its_policy_admits_this_one(
    aws: EmbeddedAws,
) -> None:
    theirs, fsx = aws.client("s3", account="999988887777"), aws.client("fsx")
    theirs.create_bucket(Bucket="theirs-to-link")
    for key in ("open/a", "closed/b"):
        theirs.put_object(Bucket="theirs-to-link", Key=key, Body=b"x")
    identifier = _create(aws, "theirs")["FileSystemId"]
    _available(aws, identifier)
    link = {"FileSystemId": identifier, "FileSystemPath": "/data"}
    link["DataRepositoryPath"] = "s3://theirs-to-link/"
    with pytest.raises(ClientError, match="does not exist or is not accessible"):
        fsx.create_data_repository_association(**link)
    allowed = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "s3:*"}
    places = ["arn:aws:s3:::theirs-to-link", "arn:aws:s3:::theirs-to-link/open/*"]
    policy = {"Version": "2012-10-17", "Statement": [{**allowed, "Resource": places}]}
    theirs.put_bucket_policy(Bucket="theirs-to-link", Policy=json.dumps(policy))
    fsx.create_data_repository_association(**link, BatchImportMetaDataOnCreate=True)
    ended = wait(lambda: _task(aws, identifier), lambda task: "EndTime" in task)
    counts = [ended["Status"][each] for each in ("SucceededCount", "FailedCount")]
    assert counts == [1, 1]
    fsx.delete_file_system(FileSystemId=identifier)


def test_an_import_that_is_cancelled_brings_nothing_and_then_lets_the_system_go(
    aws: EmbeddedAws,
) -> None:
    fsx = aws.client("fsx")
    identifier = _create(aws, "cancelled")["FileSystemId"]
    _available(aws, identifier)
    put(aws, "lustre/a-file", "x")
    fsx.create_data_repository_association(
        FileSystemId=identifier, FileSystemPath="/data", DataRepositoryPath=f"s3://{BUCKET}/lustre"
    )
    wait(
        lambda: fsx.describe_data_repository_associations()["Associations"][-1],
        lambda each: each["Lifecycle"] == "AVAILABLE",
    )
    task = fsx.create_data_repository_task(
        FileSystemId=identifier,
        Type="IMPORT_METADATA_FROM_REPOSITORY",
        Paths=[f"s3://{BUCKET}/lustre/"],
        Report={"Enabled": False},
    )["DataRepositoryTask"]["TaskId"]
    assert fsx.cancel_data_repository_task(TaskId=task)["Lifecycle"] == "CANCELING"
    with pytest.raises(fsx.exceptions.BadRequest, match="CANCELING"):
        fsx.delete_file_system(FileSystemId=identifier)
    ended = wait(lambda: _task(aws, identifier), lambda t: t["Lifecycle"] == "CANCELED")
    assert ended["Status"]["SucceededCount"] == 0
    assert fsx.delete_file_system(FileSystemId=identifier)["Lifecycle"] == "DELETING"


def _exported(aws: EmbeddedAws, identifier: str, *paths: str) -> dict[str, Any]:
    fsx = aws.client("fsx")
    task = fsx.create_data_repository_task(
        FileSystemId=identifier,
        Type="EXPORT_TO_REPOSITORY",
        Paths=list(paths),
        Report={"Enabled": False},
    )["DataRepositoryTask"]
    described: dict[str, Any] = wait(
        lambda: fsx.describe_data_repository_tasks(TaskIds=[task["TaskId"]])["DataRepositoryTasks"][
            0
        ],
        lambda one: one["Lifecycle"] in ("SUCCEEDED", "FAILED"),
    )
    return described


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/data", "the path '/data' is not relative"),
        ("data/missing", "the path 'data/missing' does not exist"),
        ("other", "the path 'other' is not linked to S3"),
    ],
)
def test_an_export_of_a_path_that_is_not_valid_fails(
    aws: EmbeddedAws, path: str, message: str
) -> None:
    identifier = _create(aws, path.strip("/").replace("/", "-"))["FileSystemId"]
    _available(aws, identifier)
    _association(aws, identifier)
    task = _exported(aws, identifier, path)
    assert (task["Lifecycle"], task["FailureDetails"]["Message"]) == ("FAILED", message)


def test_files_that_cannot_be_exported_are_counted_and_fail_the_task(tmp_path: Path) -> None:
    with EmbeddedAws(time_scale=0.001, directory=tmp_path) as aws:
        prepare(aws)
        identifier = _create(aws, "too-long")["FileSystemId"]
        _available(aws, identifier)
        _association(aws, identifier)
        [system] = tmp_path.rglob(identifier)
        deep = system / "data" / Path(*["d" * 200] * 5)
        deep.mkdir(parents=True)
        (deep / ("n" * 200)).write_text("S3's keys have 1,024 bytes at the most")
        (system / "data" / "kept").write_text("fine")
        task = _exported(aws, identifier, "data")
        counts = (task["Status"]["SucceededCount"], task["Status"]["FailedCount"])
        assert (task["Lifecycle"], counts) == ("FAILED", (1, 1))
        assert read(aws, "lustre/kept") == b"fine"


def test_the_token_of_a_file_system_that_is_gone_makes_another_one(aws: EmbeddedAws) -> None:
    fsx = aws.client("fsx")
    first = _create(aws, "again")["FileSystemId"]
    _available(aws, first)
    fsx.delete_file_system(FileSystemId=first)
    wait(lambda: aws.state()["fsx"]["FileSystems"], lambda systems: first not in systems)
    second = _create(aws, "again")["FileSystemId"]
    assert second != first
    assert _available(aws, second)["Lifecycle"] == "AVAILABLE"
