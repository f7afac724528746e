"""Objects are read and listed while others replace and delete them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import psutil
import pytest
from moto import mock_aws
from moto.s3.models import s3_backends

from orchestration.local.account import storage
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.storage import Location
from orchestration.local.datasync.objects import S3Location
from tests.local.conftest import install_for_a_test
from tests.meanwhile import meanwhile

BUCKET = "changing"
CONTENT = b"content"
KEYS = [f"key-{number}" for number in range(100)]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with mock_aws():
        install_for_a_test(monkeypatch)
        storage_of_moto = s3_backends[ACCOUNT_ID]["aws"]
        storage_of_moto.create_bucket(BUCKET, "us-east-1")
        yield storage_of_moto


def lists(backend: Any) -> None:
    bucket = backend.get_bucket(BUCKET)
    backend.list_objects(bucket, "key-", None, None, None)


def lists_versions(backend: Any) -> None:
    backend.list_object_versions(BUCKET, prefix="key-")


def transfers(_: Any) -> None:
    location = S3Location("arn", {"S3BucketArn": f"arn:aws:s3:::{BUCKET}"}, {})
    for file in location.files().values():
        assert file.content() == CONTENT


def checks(_: Any) -> None:
    storage.has_objects(Location(BUCKET, "missing"))


def test_an_object_stays_readable_when_others_replace_and_delete_it(s3: Any) -> None:
    read = []
    for _ in range(2):
        s3.put_object(BUCKET, "replaced", CONTENT)
        read.append(s3.get_object(BUCKET, "replaced"))
    s3.delete_object(BUCKET, "replaced")
    assert [each.value for each in read] == [CONTENT, CONTENT]


def test_objects_that_nobody_holds_any_more_are_closed(s3: Any) -> None:
    client, content = boto3.client("s3", region_name="us-east-1"), b"x" * 6_000_000
    place = {"Bucket": BUCKET, "Key": "replaced"}
    client.put_object(**place, Body=content)
    client.delete_object(**place)
    before = psutil.Process().num_fds()
    for _ in range(3):
        client.put_object(**place, Body=content)
        upload = {**place, "UploadId": client.create_multipart_upload(**place)["UploadId"]}
        made = client.upload_part(**upload, PartNumber=1, Body=content)
        parts = {"Parts": [{"PartNumber": 1, "ETag": made["ETag"]}]}
        client.complete_multipart_upload(**upload, MultipartUpload=parts)
    client.delete_object(**place)
    gc.collect()
    assert psutil.Process().num_fds() <= before


@pytest.mark.parametrize("work", [lists, lists_versions, transfers, checks])
def test_objects_are_listed_while_others_change_them(s3: Any, work: Callable[[Any], None]) -> None:
    def change(number: int) -> None:
        s3.put_object(BUCKET, KEYS[number % 100], CONTENT)
        s3.delete_object(BUCKET, KEYS[(number * 7) % 100])

    for number in range(100):
        change(number)
    meanwhile(change, lambda: work(s3), 200)


def test_a_deleted_object_of_a_versioned_bucket_is_none_to_read(s3: Any) -> None:
    s3.put_bucket_versioning(BUCKET, "Enabled")
    s3.put_object(BUCKET, "deleted", CONTENT)
    s3.delete_object(BUCKET, "deleted")
    place = Location(BUCKET, "deleted")
    assert not storage.exists(place)
    assert not storage.objects(place)
    assert not storage.has_objects(place)
