"""A place in S3 that data is copied to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal
from urllib.parse import quote, urlencode

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import All, Compare, Function, Result, Tree, apply
from orchestration.graph import Choose, Graph
from orchestration.refs import is_given
from orchestration.stages.copying import objects
from orchestration.stages.copying.batch import ManifestCopy
from orchestration.stages.copying.comparing import Counts, by_service
from orchestration.stages.copying.datasync import Transfer, misplaced
from orchestration.stages.copying.locations import in_s3, owned
from orchestration.stages.listing import listing
from orchestration.stages.stage import Context, Fragment
from orchestration.stages.values import Model, Text, s3_problem

Pattern = str
_TAG: Final = re.compile(r"[\w\s+=.:/@-]*")
_TAG_KEY, _TAG_VALUE = 128, 256
_NO_TAG: Final = (
    "expected a key of up to 128 and a value of up to 256 letters, digits, spaces and + - = . _ : "
    "/ @; keys that begin with aws: are reserved"
)


class S3Destination(Model):
    """A copy in S3, verified: object by object, or by DataSync, which has no limit on either."""

    kind: Literal["s3"] = "s3"
    uri: Text | None = None
    """Prefix to copy to; by default the run's own place in the workspace. Objects there that
    are not in the source fail the verification of ``copy_by: objects`` and ``copy_by: batch``;
    DataSync leaves them."""
    copy_by: Literal["objects", "datasync", "automatic", "batch"] = "objects"
    """``objects``: at most 500 objects of at most 5 GiB each. ``datasync``: any number of any size,
    by AWS DataSync in Enhanced mode, which verifies each; it takes minutes to begin, and costs per
    GB and execution. ``automatic``: objects one by one where there are at most 500 with 5 GiB
    together, else DataSync. ``batch``: the objects or versions that a ``manifest`` lists, of at
    most 5 GB each, by S3 Batch Operations; it costs per job and object."""
    manifest: Text | None = None
    """S3 URI of the list of objects that ``copy_by: batch`` copies: CSV without a header, each line
    a bucket and a key below ``source``, URL-encoded; not encrypted with a KMS key. A copy keeps its
    whole key, so that ``location`` ends in the source's own prefix."""
    manifest_versions: bool = False
    """True if the third column of the manifest is the version of each object; ``null`` for those
    without one."""
    batch_role: Text | None = None
    """ARN of the role in this account by which S3 Batch Operations reads the manifest and the
    source, and writes the copy and its report; it trusts ``batchoperations.s3.amazonaws.com``. By
    default the pipeline's role. ``orchestrate deploy`` makes the one that is named
    ``<pipeline>-<region>-batch``."""
    datasync_role: Text | None = None
    """ARN of the role in this account by which DataSync reads the source and writes the copy; it
    trusts ``datasync.amazonaws.com``. By default the pipeline's role. ``orchestrate deploy`` makes
    the one that is named ``<pipeline>-<region>-datasync``."""
    include: tuple[Pattern, ...] = ()
    """Folders and objects below the source to copy, where not all of it: ``/train``, ``/2024*``; a
    wildcard may stand at the end only. ``copy_by: datasync`` only."""
    exclude: tuple[Pattern, ...] = ()
    """Folders and objects to leave out: ``/raw``, ``*.tmp``. ``copy_by: datasync`` only."""
    storage_class: (
        Literal["STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_INSTANT_RETRIEVAL"]
        | None
    ) = None
    """Storage class of the copies: one that can be read at once; by default ``STANDARD``."""
    kms_key: Text | None = None
    """KMS key of the copies, the ARN of a key or an alias in the bucket's region; by default they
    are encrypted as the bucket says. ``copy_by: objects`` and ``copy_by: batch`` only."""
    source_kms_key: Text | None = None
    """KMS key that the source is encrypted with: ``orchestrate deploy`` lets the roles that copy
    decrypt by it, the state machine's and those that it makes for DataSync and for S3 Batch
    Operations."""
    bucket_kms_key: Text | None = None
    """KMS key of the default encryption of the bucket that is copied to: ``orchestrate deploy``
    lets the role that it makes for DataSync use it. ``copy_by: datasync`` only."""
    source_account: str | None = Field(default=None, pattern=r"^[0-9]{12}$")
    """AWS account that the source's bucket must belong to, if not to the pipeline's own; no other's
    is read. Its bucket policy must let the copying role list and read it; ``orchestrate deploy``
    shows the statements."""
    tags: dict[str, str] = Field(default={}, max_length=10)
    """Tags of the copies, instead of those of the source's objects. ``copy_by: objects`` and
    ``copy_by: batch`` only."""
    max_concurrency: int = Field(default=8, ge=1, le=40)
    """Copies at a time of ``copy_by: objects``."""
    timeout_s: int = Field(default=86_400, ge=300)
    """The longest time that DataSync, or S3 Batch Operations, may take."""

    def check(self) -> Iterator[Problem]:
        """Yield what neither S3 nor DataSync would take."""
        yield from s3_problem("uri", self.uri)
        if self.copy_by in ("objects", "batch") and self.datasync_role is not None:
            yield Problem("datasync_role", "is for copy_by: datasync; remove it, or copy so")
        yield from self._check_fields()
        yield from self._check_manifest()
        for name in ("include", "exclude"):
            patterns: tuple[str, ...] = getattr(self, name)
            if patterns and self.copy_by != "datasync":
                yield Problem(name, "is for copy_by: datasync only: a listing can't be filtered")
            yield from misplaced(name, patterns)

    def _check_fields(self) -> Iterator[Problem]:
        """Yield the fields that the way of copying does not have."""
        if self.copy_by in ("datasync", "automatic"):
            if self.kms_key is not None:
                message = (
                    "DataSync encrypts as the bucket says; set the bucket's default encryption, "
                    "and name its key in bucket_kms_key"
                )
                yield Problem("kms_key", message)
            if self.tags:
                message = "is for copy_by: objects or batch: DataSync copies the source's tags"
                yield Problem("tags", message)
        if self.copy_by != "datasync" and self.bucket_kms_key is not None:
            yield Problem("bucket_kms_key", "is for copy_by: datasync; say kms_key, or remove it")
        for key, value in self.tags.items():
            problems = not 1 <= len(key) <= _TAG_KEY or len(value) > _TAG_VALUE
            if problems or not all(map(_TAG.fullmatch, (key, value))) or key.startswith("aws:"):
                yield Problem(f"tags.{key}", _NO_TAG)

    def _check_manifest(self) -> Iterator[Problem]:
        """Yield what S3 Batch Operations would not take, and what is for it only."""
        if self.copy_by != "batch":
            for name in ("manifest", "manifest_versions", "batch_role"):
                if is_given(getattr(self, name)):
                    yield Problem(name, "is for copy_by: batch; remove it, or copy so")
            return
        if self.manifest is None:
            message = (
                "is required by copy_by: batch; write s3://bucket/key.csv, or copy_by: datasync"
            )
            yield Problem("manifest", message)
        yield from s3_problem("manifest", self.manifest)
        if isinstance(self.manifest, str) and self.manifest.endswith(".json"):
            message = (
                "expected a CSV file of buckets and keys, got JSON; the manifest of an S3 "
                "Inventory is not taken: list its objects as CSV"
            )
            yield Problem("manifest", message)
        if isinstance(self.uri, str) and not re.fullmatch(r"s3://[^/]+/.*[^/]", self.uri):
            message = (
                "expected a prefix below the bucket, without a slash at its end: s3://bucket/copies"
            )
            yield Problem("uri", message)

    @property
    def _class_in_s3(self) -> str | None:
        """The storage class by S3's own name; the field has DataSync's."""
        names = {"GLACIER_INSTANT_RETRIEVAL": "GLACIER_IR"}
        return (
            None
            if self.storage_class is None
            else names.get(self.storage_class, self.storage_class)
        )

    def _options(self) -> dict[str, Tree]:
        """Return the fields of ``CopyObject`` beside the two places."""
        encryption: dict[str, Tree] = {
            "ServerSideEncryption": "aws:kms",
            "SSEKMSKeyId": self.kms_key,
            "BucketKeyEnabled": True,
        }
        tags: dict[str, Tree] = {
            "Tagging": urlencode(sorted(self.tags.items()), quote_via=quote),
            "TaggingDirective": "REPLACE",
        }
        owner: dict[str, Tree] = {"ExpectedSourceBucketOwner": self.source_account}
        return {
            **({} if self.storage_class is None else {"StorageClass": self._class_in_s3}),
            **({} if self.kms_key is None else encryption),
            **(tags if self.tags else {}),
            **({} if self.source_account is None else owner),
        }

    def lower(self, name: str, source: Text, context: Context) -> Fragment:
        """Return the steps of a stage that copies here."""
        target = self.uri if self.uri is not None else context.location(name)
        if self.copy_by == "batch":
            return self._by_manifest(name, source, target, context)
        transfer = self._transfer(name, source, target, context)
        by_datasync = transfer.steps()
        outputs: dict[str, Tree] = {"location": target}
        if self.copy_by == "datasync":
            counts = Counts(name)
            outputs |= {"object_count": counts.done, "total_bytes": counts["bytes"]}
            if self.source_account is None:
                return Fragment(steps=by_datasync, outputs=outputs)
            checked = owned(f"{name}.owned", source, self.source_account)
            after = replace(transfer.source, after=(checked.name,))
            steps = (checked, *replace(transfer, source=after).steps())
            return Fragment(steps=steps, outputs=outputs)
        one_by_one = objects.steps(
            name,
            source,
            target,
            max_concurrency=self.max_concurrency,
            options=self._options(),
            decrypts=self.source_kms_key,
        )
        listed = listing(f"{name}.list", source, texts=("Key", "ETag"), owner=self.source_account)
        if self.copy_by == "objects":
            outputs |= objects.outputs(name)
            return Fragment(steps=(listed, *one_by_one), outputs=outputs)
        choice = Choose(
            name=f"{name}.few",
            condition=_few_and_small(name),
            then=Graph(one_by_one),
            otherwise=Graph(by_datasync),
        )
        return Fragment(steps=(listed, choice), outputs=outputs)

    def _by_manifest(self, name: str, source: Text, target: Text, context: Context) -> Fragment:
        checked = (
            ()
            if self.source_account is None
            else (owned(f"{name}.owned", source, self.source_account),)
        )
        copy = ManifestCopy(
            stage=name,
            context=context,
            source=source,
            manifest="" if self.manifest is None else self.manifest,
            versions=self.manifest_versions,
            target=target,
            role=context.role if self.batch_role is None else self.batch_role,
            options=self._batch_options(),
            decrypts=self.source_kms_key,
            timeout_s=self.timeout_s,
            after=tuple(call.name for call in checked),
        )
        return Fragment(steps=(*checked, *copy.steps()), outputs=copy.outputs())

    def _batch_options(self) -> dict[str, Tree]:
        """Return the fields of ``S3PutObjectCopy`` beside the place."""
        stored = self._class_in_s3
        tags: list[Tree] = [
            {"Key": key, "Value": value} for key, value in sorted(self.tags.items())
        ]
        encryption: dict[str, Tree] = {
            "SSEAwsKmsKeyId": self.kms_key,
            "BucketKeyEnabled": True,
        }
        return {
            **({} if stored is None else {"StorageClass": stored}),
            **({} if self.kms_key is None else encryption),
            **({"NewObjectTagging": tags} if tags else {}),
        }

    def _transfer(self, name: str, source: Text, target: Text, context: Context) -> Transfer:
        role = context.role if self.datasync_role is None else self.datasync_role
        stored = {} if self.storage_class is None else {"S3StorageClass": self.storage_class}
        return Transfer(
            stage=name,
            context=context,
            source=in_s3(f"{name}.source", source, role, context, key=self.source_kms_key),
            target=in_s3(
                f"{name}.target", target, role, context, options=stored, key=self.bucket_kms_key
            ),
            compared=by_service(name, filtered=bool(self.exclude)),
            include=self.include,
            exclude=self.exclude,
            timeout_s=self.timeout_s,
        )


def _few_and_small(name: str) -> All:
    size = apply(Function.SUM, Result(f"{name}.list", "objects"), "Size")
    return All(
        (
            Compare("eq", Result(f"{name}.list", "truncated"), False),
            Compare("le", size, objects.LARGEST_COPY),
        )
    )
