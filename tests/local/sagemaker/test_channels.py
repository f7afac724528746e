"""How data reaches the hosts of a job: file systems, manifests, pipes, instance groups."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.local.conftest import BUCKET, finished_training, put, read, tar_gz, training_request

pytestmark = pytest.mark.toolkit

# Every host writes what its channels hold to /opt/ml/model; the first host's is kept.
TELL = """
    import json, os, pathlib
    found = {}
    for name in json.loads(os.environ["SM_CHANNELS"]):
        place = pathlib.Path(os.environ["SM_INPUT_DIR"], "data", name)
        if place.is_dir():
            found[name] = {
                p.relative_to(place).as_posix(): p.read_text()
                for p in sorted(place.rglob("*")) if p.is_file()
            }
        else:
            found[name] = [
                pathlib.Path(f"{place}_{epoch}").read_bytes().hex() for epoch in range(2)
            ]
    where = os.environ.get("WRITE_TO")
    if where:
        pathlib.Path(os.environ["SM_INPUT_DIR"], "data", where, "left.txt").write_text("left")
    pathlib.Path(os.environ["SM_MODEL_DIR"], "model.json").write_text(json.dumps(found))
"""


def run(aws: EmbeddedAws, name: str, channels: list[dict[str, Any]], **more: Any) -> Any:
    script = put(aws, "code/tell.tar.gz", tar_gz({"train.py": TELL}))
    request = training_request(name, script, InputDataConfig=channels, **more)
    aws.client("sagemaker").create_training_job(**request)
    return finished_training(aws, name)


def told(aws: EmbeddedAws, job: dict[str, Any]) -> Any:
    assert job["TrainingJobStatus"] == "Completed", (
        job.get("FailureReason"),
        aws.logs(job["TrainingJobName"]),
    )
    uri = job["ModelArtifacts"]["S3ModelArtifacts"]
    content = read(aws, uri.removeprefix(f"s3://{BUCKET}/"))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile("model.json")
        assert file is not None
        return json.load(file)


def s3(name: str, key: str, mode: str | None = None, **source: Any) -> dict[str, Any]:
    described = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{key}", **source}
    described.setdefault("S3DataDistributionType", "FullyReplicated")
    entry = {"ChannelName": name, "DataSource": {"S3DataSource": described}}
    return entry if mode is None else {**entry, "InputMode": mode}


def test_an_efs_file_system_outlasts_the_jobs_that_mount_it(aws: EmbeddedAws) -> None:
    mounted = {
        "FileSystemId": "fs-0123456789abcdef0",
        "FileSystemType": "EFS",
        "DirectoryPath": "/sets/one",
        "FileSystemAccessMode": "rw",
    }
    channel = {"ChannelName": "shared", "DataSource": {"FileSystemDataSource": mounted}}
    vpc = {"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0123456789abcdef0"]}
    first = run(aws, "efs-1", [channel], VpcConfig=vpc, Environment={"WRITE_TO": "shared"})
    assert told(aws, first) == {"shared": {}}
    second = run(aws, "efs-2", [channel], VpcConfig=vpc)
    assert told(aws, second) == {"shared": {"left.txt": "left"}}


def test_a_manifest_brings_what_it_lists(aws: EmbeddedAws) -> None:
    for name in ("a.txt", "deep/b.txt", "c.txt"):
        put(aws, f"listed/{name}", name)
    listed = [{"prefix": f"s3://{BUCKET}/listed/"}, "a.txt", "deep/b.txt"]
    put(aws, "lists/two.manifest", json.dumps(listed))
    job = run(aws, "manifest", [s3("train", "lists/two.manifest", S3DataType="ManifestFile")])
    assert told(aws, job) == {"train": {"a.txt": "a.txt", "deep/b.txt": "deep/b.txt"}}


@pytest.mark.parametrize(
    ("name", "text"),
    [("text", "not JSON"), ("object", "{}"), ("empty", "[]"), ("no-prefix", '["s3://x"]')],
)
def test_a_bad_manifest_is_named(aws: EmbeddedAws, name: str, text: str) -> None:
    put(aws, "lists/bad.manifest", text)
    job = run(
        aws, f"manifest-{name}", [s3("train", "lists/bad.manifest", S3DataType="ManifestFile")]
    )
    assert "lists/bad.manifest is not a manifest" in job["FailureReason"]


def test_a_pipe_gives_every_epoch_anew(aws: EmbeddedAws) -> None:
    for name in ("one", "two"):
        put(aws, f"piped/{name}.gz", gzip.compress(name.encode()))
    channel = {**s3("train", "piped/", "Pipe"), "CompressionType": "Gzip"}
    assert told(aws, run(aws, "pipe", [channel])) == {"train": [b"onetwo".hex()] * 2}


def test_a_pipe_of_an_augmented_manifest_carries_records(aws: EmbeddedAws) -> None:
    image = put(aws, "images/1.png", b"png bytes")
    put(aws, "lists/labels.jsonl", json.dumps({"source-ref": image, "label": 7, "other": 0}))
    channel = s3(
        "train",
        "lists/labels.jsonl",
        "Pipe",
        S3DataType="AugmentedManifestFile",
        AttributeNames=["source-ref", "label"],
    )
    job = run(aws, "augmented", [{**channel, "RecordWrapperType": "RecordIO"}])
    magic = 0xCED7230A
    records = struct.pack("<II", magic, 9) + b"png bytes\0\0\0" + struct.pack("<II", magic, 1)
    assert told(aws, job) == {"train": [(records + b"7\0\0\0").hex()] * 2}


def test_a_channel_reaches_the_groups_that_it_names(aws: EmbeddedAws) -> None:
    for number in range(4):
        put(aws, f"grouped/{number}", str(number))
    groups = [
        {"InstanceGroupName": name, "InstanceType": "ml.c5.xlarge", "InstanceCount": count}
        for name, count in (("first", 1), ("second", 2))
    ]
    sharded = {"S3DataDistributionType": "ShardedByS3Key"}
    channels = [
        s3("everywhere", "grouped/", InstanceGroupNames=["first", "second"], **sharded),
        s3("mine", "grouped/", InstanceGroupNames=["first"], **sharded),
        s3("theirs", "grouped/", InstanceGroupNames=["second"]),
    ]
    job = run(
        aws,
        "grouped",
        channels,
        ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 10},
    )
    assert told(aws, job) == {
        "everywhere": {"0": "0", "3": "3"},
        "mine": {str(number): str(number) for number in range(4)},
    }
