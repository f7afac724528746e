"""Objects are read and listed while others replace and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws
from moto.s3.models import FakeKey, s3_backends
from moto.s3.utils import _VersionedKeyStore

from orchestration.local.account import storage
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.storage import Location
from orchestration.local.datasync.objects import S3Location
from orchestration.local.s3 import concurrency
from tests.meanwhile import meanwhile

BUCKET = "changing"
CONTENT = b"content"
KEYS = [f"key-{number}" for number in range(100)]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    # What is installed for a server's process goes with this test.
    monkeypatch.setattr(FakeKey, "dispose", FakeKey.dispose)
    for name in ("items", "values", "lists"):
        monkeypatch.setattr(_VersionedKeyStore, name, getattr(_VersionedKeyStore, name))
    with mock_aws():
        concurrency.install()
        storage_of_moto = s3_backends[ACCOUNT_ID]["aws"]
        storage_of_moto.create_bucket(BUCKET, "us-east-1")
        yield storage_of_moto


def lists(backend: Any) -> None:
    bucket = backend.get_bucket(BUCKET)
    backend.list_objects(bucket, "key-", None, None, None)


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


@pytest.mark.parametrize("work", [lists, transfers, checks])
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
