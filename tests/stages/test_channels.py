"""Where a training job's data comes from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stages.training import job, refused, sent

VPC = {"subnets": ["subnet-0123456789abcdef0"], "security_groups": ["sg-0123456789abcdef0"]}


def entry(channel: Any, **further: Any) -> Any:
    [found] = sent(job(channels={"training": channel}, **further))["InputDataConfig"]
    assert found.pop("ChannelName") == "training"
    return found


def test_an_address_alone_is_a_plain_channel() -> None:
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": "s3://b/x",
        "S3DataDistributionType": "FullyReplicated",
    }
    for channel in ("s3://b/x", {"uri": "s3://b/x"}, {"kind": "s3", "uri": "s3://b/x"}):
        assert entry(channel) == {"DataSource": {"S3DataSource": source}}


def test_an_augmented_manifest_with_all_that_pipe_mode_has() -> None:
    channel = {
        "uri": "s3://b/manifest",
        "data_type": "AugmentedManifestFile",
        "attribute_names": ["source-ref", "label"],
        "distribution": "ShardedByS3Key",
        "input_mode": "Pipe",
        "content_type": "application/x-recordio",
        "compression": "Gzip",
        "record_wrapper": "RecordIO",
        "shuffle_seed": 7,
    }
    assert entry(channel) == {
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "AugmentedManifestFile",
                "S3Uri": "s3://b/manifest",
                "S3DataDistributionType": "ShardedByS3Key",
                "AttributeNames": ["source-ref", "label"],
            }
        },
        "InputMode": "Pipe",
        "ContentType": "application/x-recordio",
        "CompressionType": "Gzip",
        "RecordWrapperType": "RecordIO",
        "ShuffleConfig": {"Seed": 7},
    }


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        (
            {"kind": "fsx_lustre", "file_system_id": "fs-0123456789abcdef0", "path": "/fsx/train"},
            ("fs-0123456789abcdef0", "FSxLustre", "/fsx/train", "ro"),
        ),
        (
            {"kind": "efs", "file_system_id": "fs-11111111", "path": "/data", "access": "rw"},
            ("fs-11111111", "EFS", "/data", "rw"),
        ),
    ],
)
def test_a_file_system_that_is_there_already(channel: Any, expected: tuple[str, ...]) -> None:
    names = ("FileSystemId", "FileSystemType", "DirectoryPath", "FileSystemAccessMode")
    source = dict(zip(names, expected, strict=True))
    assert entry(channel, vpc=VPC) == {"DataSource": {"FileSystemDataSource": source}}
    assert "vpc" in refused(job(channels={"training": channel}))


@pytest.mark.parametrize(
    ("channel", "path", "message"),
    [
        ({"uri": "https://b/x"}, "uri", "write s3://bucket/prefix"),
        (
            {"uri": "s3://b/m", "data_type": "AugmentedManifestFile"},
            "attribute_names",
            "needs the attributes",
        ),
        ({"uri": "s3://b/m", "attribute_names": ["a"]}, "attribute_names", "goes with data_type"),
        (
            {
                "uri": "s3://b/m",
                "data_type": "AugmentedManifestFile",
                "attribute_names": ["a"],
                "input_mode": "FastFile",
            },
            "data_type",
            "read in FastFile mode; add input_mode: Pipe",
        ),
        ({"uri": "s3://b/m", "compression": "Gzip"}, "compression", "unpack in the script"),
        ({"uri": "s3://b/m", "record_wrapper": "RecordIO"}, "record_wrapper", "only Pipe mode"),
        ({"uri": "s3://b/m", "input_mode": "Fast"}, "input_mode", "'File', 'FastFile' or 'Pipe'"),
        ({"kind": "fsx_lustre"}, "", "file_system"),
        ({"file_system_id": "fs-0123456789abcdef0"}, "", "give it one of kind: s3, fsx_lustre"),
        ({"file_system": {"ref": "fs.file_system"}}, "", "give it one of kind: s3, fsx_lustre"),
        (
            {"kind": "fsx_lustre", "file_system_id": "fs-0123456789abcdef0"},
            "path",
            "the mount name and a directory",
        ),
        (
            {"kind": "efs", "file_system_id": "fs-11111111", "path": "/x", "access": "rx"},
            "access",
            "'ro' or 'rw'",
        ),
    ],
)
def test_what_no_channel_can_be(channel: Any, path: str, message: str) -> None:
    found = refused(job(channels={"training": channel}, vpc=VPC))
    assert message in found[f"channels.training.{path}".rstrip(".")]


def test_a_mode_of_the_job_is_the_channel_s_own_where_it_has_none() -> None:
    channel = {"uri": "s3://b/m", "compression": "Gzip"}
    assert entry(channel, input_mode="Pipe")["CompressionType"] == "Gzip"


def test_a_channel_s_name_becomes_a_folder() -> None:
    found = refused(job(channels={"my channel/1": "s3://b/x"}))
    assert "letters, digits, dots" in found["channels.my channel/1"]
