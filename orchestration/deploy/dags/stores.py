"""Folders of DAGs: on this machine, and in S3, where managed Airflow reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from orchestration.errors import DeployError


class Store(Protocol):
    """A place for files, by names with slashes."""

    @property
    def place(self) -> str:
        """The place for people."""

    def read(self, name: str) -> bytes | None:
        """Return a file; None if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file, at once for whoever reads it."""

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone is no error."""

    def folders(self) -> Sequence[str]:
        """List the first folders right below; none where that is denied."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on this machine."""

    path: Path

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def read(self, name: str) -> bytes | None:
        """Return a file; None if there is none."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file, at once for whoever reads it."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of another suffix, so that nobody takes it for a DAG file.
        half = file.with_name(f".{file.name}.{uuid4().hex}")
        half.write_bytes(content)
        os.replace(half, file)

    def delete(self, name: str) -> None:
        """Delete a file, and the folders that it leaves empty."""
        file = self.path / name
        file.unlink(missing_ok=True)
        for folder in file.parents:
            if folder == self.path or not folder.is_dir() or any(folder.iterdir()):
                return
            folder.rmdir()

    def folders(self) -> Sequence[str]:
        """List the folders right below."""
        return sorted(each.name for each in self.path.glob("*/"))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A prefix in S3."""

    bucket: str
    prefix: str
    """Empty, or ends with a slash."""
    client: Any

    @classmethod
    def at(cls, uri: str, client: Any) -> Bucket:
        """Return the prefix that a URI names."""
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        if not uri.startswith("s3://") or not bucket:
            raise DeployError(f"expected s3://bucket/prefix, got {uri!r}")
        prefix = prefix.strip("/")
        return cls(bucket, f"{prefix}/" if prefix else "", client)

    @property
    def place(self) -> str:
        """The URI."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def read(self, name: str) -> bytes | None:
        """Return an object; None if there is none."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            response = self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)
            content: bytes = response["Body"].read()
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if code == "NoSuchKey":
                return None
            raise DeployError(f"{self.place}/{name} can't be read: {error}") from error
        return content

    def write(self, name: str, content: bytes) -> None:
        """Create or replace an object."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self.client.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=content)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(
                f"{self.place}/{name} can't be written: {error}; deploy again once that is fixed"
            ) from error

    def delete(self, name: str) -> None:
        """Delete an object."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self.client.delete_object(Bucket=self.bucket, Key=self.prefix + name)
        except (BotoCoreError, ClientError) as error:
            raise DeployError(
                f"{self.place}/{name} can't be deleted: {error}; try again once that is fixed"
            ) from error

    def folders(self) -> Sequence[str]:
        """List the folders among the first thousand entries right below; none where denied."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            # One request: a bucket may hold any number of objects besides.
            page = self.client.list_objects_v2(
                Bucket=self.bucket, Prefix=self.prefix, Delimiter="/"
            )
        except (BotoCoreError, ClientError):
            return ()
        prefixes = (each["Prefix"] for each in page.get("CommonPrefixes", ()))
        return [each.removeprefix(self.prefix).rstrip("/") for each in prefixes]
