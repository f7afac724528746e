"""Access to the embedded S3 from inside the server, without HTTP and without recording."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestration.local.account import sharing
from orchestration.local.account.protocol import ACCOUNT_ID, ServiceError


@dataclass(frozen=True)
class Caller:
    """Whoever reads and writes objects, and from where."""

    principal: str = ACCOUNT_ID
    """The ARN of a role, or an account: buckets of others need a policy that admits it."""
    region: str | None = None
    """The only region whose buckets it reaches; None for any."""


@dataclass(frozen=True)
class Location:
    """A bucket and a key or prefix in it, and who asks for it."""

    bucket: str
    key: str
    caller: Caller = field(default=Caller(), compare=False)

    @classmethod
    def parse(cls, uri: str, caller: Caller | None = None) -> Location:
        """Parse an `s3://bucket/key` URI."""
        if not uri.startswith("s3://"):
            raise ServiceError("ValidationException", f"'{uri}' is not an s3:// URI")
        bucket, _, key = uri[5:].partition("/")
        return cls(bucket, key, caller or Caller())

    def at(self, key: str) -> Location:
        """Return the location of another key in this bucket."""
        return replace(self, key=key)

    def child(self, relative: str) -> Location:
        """Return the location of a key below this prefix."""
        prefix = self.key.rstrip("/")
        return self.at(f"{prefix}/{relative}" if prefix else relative)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class StoredObject:
    """One object below a prefix: its key, and the key's part after the prefix."""

    key: str
    relative: str


def objects(prefix: Location) -> list[StoredObject]:
    """List the objects below a prefix (or the object itself), in the order of their keys.

    A prefix without a trailing slash also matches keys that only begin with its text, as in S3.
    """
    bucket = _reached(prefix, "s3:ListBucket")
    keys = [key for key in current(bucket) if key.startswith(prefix.key)]
    directory = prefix.key if prefix.key.endswith("/") or not prefix.key else prefix.key + "/"
    return [
        StoredObject(key, _relative(key, prefix.key, directory))
        for key in keys
        if not key.endswith("/")
    ]


def read(location: Location) -> bytes:
    """Read an object."""
    _reached(location, "s3:GetObject")
    stored = _backend().get_object(location.bucket, location.key)
    if stored is None:
        raise ServiceError("NoSuchKey", f"{location} does not exist", status=404)
    return bytes(stored.value)


def exists(location: Location) -> bool:
    """Return whether an object exists that may be read."""
    _reached(location, "s3:GetObject")
    return _backend().get_object(location.bucket, location.key) is not None


def etag(location: Location) -> str | None:
    """Return the ETag of an object, or None if it does not exist."""
    if not sharing.owner(location.bucket):
        return None
    key = _backend().get_object(location.bucket, location.key)
    return None if key is None else str(key.etag)


def shared(bucket: str) -> dict[str, Any]:
    """Return the objects of a bucket, whichever account it belongs to, as moto keeps them."""
    return current(_backend().get_bucket(bucket))


def current(bucket: Any) -> dict[str, Any]:
    """Return the objects that a bucket of moto's has now, in the order of their keys."""
    from moto.s3.models import FakeKey

    # A versioned bucket keeps a marker of what was deleted.
    objects = {key: newest for key, newest in bucket.keys.items() if isinstance(newest, FakeKey)}
    return dict(sorted(objects.items()))


def bucket_exists(name: str) -> bool:
    """Return whether a bucket exists."""
    return name in _backend().buckets


def bucket_region(name: str) -> str | None:
    """Return the region of a bucket of any account, or None if the bucket does not exist."""
    return str(_backend().get_bucket(name).region_name) if sharing.owner(name) else None


def lets_list(prefix: Location) -> bool:
    """Return whether a bucket exists whose objects may be listed."""
    try:
        _reached(prefix, "s3:ListBucket")
    except ServiceError:
        return False
    return True


def has_upload(bucket: str, identifier: str) -> bool:
    """Return whether a multipart upload is in progress; True where the bucket does not exist."""
    return not bucket_exists(bucket) or identifier in _bucket(bucket).multiparts


def has_objects(prefix: Location) -> bool:
    """Return whether there is an object at a prefix, a folder's own included, as S3 lists them."""
    return any(key.startswith(prefix.key) for key in current(_reached(prefix, "s3:ListBucket")))


def write(location: Location, content: bytes) -> None:
    """Store an object."""
    _reached(location, "s3:PutObject")
    _backend().put_object(location.bucket, location.key, content)


def remove(location: Location) -> None:
    """Delete an object."""
    _backend().delete_object(location.bucket, location.key)


def download(prefix: Location, directory: Path, *, share: tuple[int, int] = (0, 1)) -> int:
    """Copy the objects below a prefix into a directory and return how many.

    `share` is (index, count): every count-th object, beginning with the index-th.
    """
    index, count = share
    chosen = objects(prefix)[index::count]
    for stored in chosen:
        place(prefix.at(stored.key), directory, stored.relative)
    return len(chosen)


def place(location: Location, directory: Path, relative: str) -> None:
    """Copy an object to a path below a directory.

    Raises `ServiceError` if a file cannot have this path. SageMaker fails a job then: for `//` see
    https://github.com/aws-samples/generative-ai-on-amazon-sagemaker/pull/242, for an object whose
    key is also the folder of another the text of `S3ModelDataSource.CompressionType`.
    """
    if "//" in f"/{relative}":
        raise ServiceError(
            "ValidationException",
            f"Failed to download data. S3 key: {location} has an illegal char sub-sequence '//' "
            "in it",
        )
    target = inside(directory, relative)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read(location))
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise ServiceError(
            "ValidationException",
            f"Failed to download data. Cannot download {location}: no object may be both a file "
            "and the folder of other objects",
        ) from error


def upload(directory: Path, prefix: Location) -> int:
    """Copy the files below a directory to a prefix and return how many."""
    count = 0
    for path in files(directory):
        write(prefix.child(path.relative_to(directory).as_posix()), path.read_bytes())
        count += 1
    return count


def files(directory: Path) -> Iterator[Path]:
    """Yield the regular files below a directory, in order.

    A folder that others remove meanwhile has none: `Path.rglob` of Python 3.11 fails there.
    """
    paths = sorted(Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return (path for path in paths if path.is_file())


def inside(directory: Path, relative: str) -> Path:
    """Return a path below a directory; raise `ServiceError` if it leads out of it."""
    target = (directory / relative).resolve()
    if not target.is_relative_to(directory.resolve()):
        raise ServiceError("ValidationException", f"the key '{relative}' leaves its directory")
    return target


def _relative(key: str, prefix: str, directory: str) -> str:
    if key == prefix:
        return key.rsplit("/", 1)[-1]
    if key.startswith(directory):
        return key[len(directory) :]
    parent = prefix.rsplit("/", 1)[0] + "/" if "/" in prefix else ""
    return key[len(parent) :]


def _backend() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT_ID]["aws"]


def _bucket(name: str) -> Any:
    if not bucket_exists(name):
        raise ServiceError("NoSuchBucket", f"the bucket '{name}' does not exist", status=404)
    return _backend().buckets[name]


def _reached(location: Location, action: str) -> Any:
    """Return the bucket of a location; raise `ServiceError` if its caller may not do that there."""
    name, caller = location.bucket, location.caller
    if sharing.owner(name) is None:
        raise ServiceError("NoSuchBucket", f"the bucket '{name}' does not exist", status=404)
    bucket = _backend().get_bucket(name)
    if caller.region not in (None, bucket.region_name):
        raise ServiceError(
            "BucketRegionError",
            f"incorrect region, the bucket '{name}' is not in '{caller.region}'",
            status=301,
        )
    # A listing is of the bucket, not of an object.
    listing = action == "s3:ListBucket"
    key, context = ("", {"s3:prefix": location.key}) if listing else (location.key, {})
    if not sharing.allows(name, action, key, caller.principal, context):
        raise ServiceError("AccessDenied", f"Access Denied: {location}", status=403)
    return bucket
