"""The rules of FSx for Lustre that a pipeline can break, in one table.

The guide is the Lustre user guide, below https://docs.aws.amazon.com/fsx/latest/LustreGuide/. Where
only the rule is documented, the message is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.protocol import ServiceError
from orchestration.local.account.rules import Rule, broken

_CAPACITY = "model: CreateFileSystemRequest.StorageCapacity; code assumed"
_THROUGHPUT = "model: CreateFileSystemLustreConfiguration.PerUnitStorageThroughput"
_VERSION = "model: CreateFileSystemRequest.FileSystemTypeVersion; code assumed"
_METADATA = "model: CreateFileSystemLustreMetadataConfiguration; code assumed"
_STORAGE = "model: CreateFileSystemRequest.StorageType; code assumed"
_LINKS = "model: CreateDataRepositoryAssociation; code assumed"
_PATHS = "model: CreateDataRepositoryAssociationRequest.FileSystemPath; code assumed"
_TASKS = "model: CreateDataRepositoryTask; code assumed"

RULES: Final[Mapping[str, Rule]] = {
    # CreateFileSystem
    "one subnet": Rule(
        "BadRequest",
        "A Lustre file system takes exactly one subnet.",
        "model: CreateFileSystemRequest.SubnetIds; code assumed",
    ),
    "subnets exist": Rule(
        "InvalidNetworkSettings",
        "The subnet ID '{subnet}' does not exist.",
        "model: InvalidNetworkSettings; wording assumed",
    ),
    "security groups exist": Rule(
        "InvalidNetworkSettings",
        "The security group '{group}' does not exist.",
        "model: InvalidNetworkSettings; wording assumed",
    ),
    "capacity of SSD": Rule(
        "BadRequest",
        "StorageCapacity {capacity} is not 1200, 2400, or a multiple of 2400 GiB.",
        _CAPACITY,
    ),
    "capacity of SCRATCH_1": Rule(
        "BadRequest",
        "StorageCapacity {capacity} is not 1200, 2400, or a multiple of 3600 GiB.",
        _CAPACITY,
    ),
    "capacity of HDD": Rule(
        "BadRequest",
        "StorageCapacity {capacity} is not a multiple of {step} GiB.",
        _CAPACITY,
    ),
    "no capacity with tiering": Rule(
        "BadRequest",
        "An Intelligent-Tiering file system takes no StorageCapacity.",
        "guide: using-fsx-lustre.html; code assumed",
    ),
    "storage types": Rule(
        "BadRequest",
        "StorageType {storage} is not supported for {deployment}.",
        _STORAGE,
    ),
    "drive cache of HDD": Rule(
        "BadRequest",
        "DriveCacheType is required for HDD, and for HDD only.",
        "model: CreateFileSystemLustreConfiguration.DriveCacheType; code assumed",
    ),
    "throughput is required": Rule(
        "BadRequest",
        "PerUnitStorageThroughput is required for {deployment}.",
        f"{_THROUGHPUT}; code assumed",
    ),
    "throughput is for persistent": Rule(
        "BadRequest",
        "PerUnitStorageThroughput is not supported for {deployment} with {storage} storage.",
        f"{_THROUGHPUT}; code assumed",
    ),
    "throughput exists": Rule(
        "InvalidPerUnitStorageThroughput",
        "PerUnitStorageThroughput {throughput} is not one of {valid}.",
        f"{_THROUGHPUT}, InvalidPerUnitStorageThroughput",
    ),
    "versions": Rule(
        "BadRequest",
        "FileSystemTypeVersion {version} is not one of 2.10, 2.12, 2.15.",
        _VERSION,
    ),
    "version of PERSISTENT_2": Rule(
        "BadRequest",
        "FileSystemTypeVersion 2.10 is not supported for PERSISTENT_2.",
        "model: CreateFileSystemLustreConfiguration.DeploymentType; code assumed",
    ),
    "version of metadata": Rule(
        "BadRequest",
        "FileSystemTypeVersion {version} is not supported with a MetadataConfiguration.",
        _VERSION,
    ),
    "metadata is for PERSISTENT_2": Rule(
        "BadRequest",
        "MetadataConfiguration is not supported for {deployment}.",
        _METADATA,
    ),
    "metadata IOPS": Rule(
        "BadRequest",
        "Iops {iops} is not one of {valid}.",
        _METADATA,
    ),
    "automatic metadata": Rule(
        "BadRequest",
        "MetadataConfiguration AUTOMATIC takes no Iops, and is for SSD storage only.",
        _METADATA,
    ),
    "EFA": Rule(
        "BadRequest",
        "EfaEnabled needs PERSISTENT_2 with a MetadataConfiguration.",
        "guide: efa-file-systems.html; code assumed",
    ),
    "tiered throughput": Rule(
        "BadRequest",
        "ThroughputCapacity is a multiple of 4000 MB/s, for Intelligent-Tiering only.",
        "model: CreateFileSystemLustreConfiguration.ThroughputCapacity; code assumed",
    ),
    "tiered cache": Rule(
        "BadRequest",
        "DataReadCacheConfiguration is required for Intelligent-Tiering, and for it only.",
        "model: CreateFileSystemLustreConfiguration.DataReadCacheConfiguration; code assumed",
    ),
    "backups": Rule(
        "BadRequest",
        "Automatic backups are not supported for {deployment}.",
        "guide: using-backups-fsx.html; code assumed",
    ),
    "import path of PERSISTENT_2": Rule(
        "BadRequest",
        "Linking a Persistent 2 file system to an S3 bucket using the LustreConfiguration is not "
        "supported. Create a file system and then create a data repository association to link S3 "
        "buckets to the file system.",
        "issue: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/issues/412",
    ),
    "import path exists": Rule(
        "InvalidImportPath",
        "The import path {path} is not accessible.",
        "model: InvalidImportPath",
    ),
    # CreateDataRepositoryAssociation
    "links need AVAILABLE": Rule(
        "BadRequest", "File system {system} is {lifecycle}.", "guide: create-dra-linked-data-repo"
    ),
    "links need 2.12": Rule(
        "BadRequest",
        "Data repository associations are not supported on Lustre version {version}.",
        _LINKS,
    ),
    "links and SCRATCH_1": Rule(
        "BadRequest",
        "Data repository associations are not supported on SCRATCH_1.",
        _LINKS,
    ),
    "links and tiering": Rule(
        "BadRequest",
        "Intelligent-Tiering file systems do not support data repository associations.",
        "guide: fsx-data-repositories.html; code assumed",
    ),
    "links and import paths": Rule(
        "BadRequest",
        "A file system with an ImportPath does not support data repository associations.",
        "model: CreateFileSystemLustreConfiguration.ImportPath; code assumed",
    ),
    "eight links": Rule(
        "BadRequest",
        "File system {system} already has 8 data repository associations.",
        _LINKS,
    ),
    "absolute paths": Rule(
        "BadRequest", "FileSystemPath '{path}' does not begin with a slash.", _PATHS
    ),
    "paths do not overlap": Rule(
        "BadRequest",
        "FileSystemPath {path} overlaps with {other} of an existing association.",
        _PATHS,
    ),
    "prefixes do not overlap": Rule(
        "BadRequest",
        "DataRepositoryPath {path} overlaps with {other} of an existing association.",
        _LINKS,
    ),
    "bucket exists": Rule(
        "BadRequest", "The bucket of {path} does not exist or is not accessible.", _LINKS
    ),
    "automatic imports in a region": Rule(
        "BadRequest",
        "AutoImportPolicy: the bucket of {path} is not in {region}, the region of the file system.",
        "guide: create-dra-linked-data-repo; code assumed; wording assumed",
    ),
    # CreateDataRepositoryTask, CancelDataRepositoryTask
    "tasks need a link": Rule(
        "BadRequest", "File system {system} is not linked to a data repository.", _TASKS
    ),
    "one task at a time": Rule(
        "DataRepositoryTaskExecuting",
        "Data repository task {task} is already executing on {system}.",
        "model: DataRepositoryTaskExecuting",
    ),
    "export tasks and auto export": Rule(
        "BadRequest",
        "Disable automatic export before an export task is executed.",
        "model: DeleteFileSystem; code assumed",
    ),
    "reports": Rule(
        "BadRequest",
        "A report that is enabled needs Path, Format and Scope.",
        "model: CompletionReport; code assumed",
    ),
    "tasks to cancel exist": Rule(
        "DataRepositoryTaskNotFound",
        "Data repository task '{task}' does not exist.",
        "model: DataRepositoryTaskNotFound",
    ),
    "tasks to cancel run": Rule(
        "DataRepositoryTaskEnded",
        "Data repository task {task} has already ended.",
        "model: DataRepositoryTaskEnded",
    ),
    # DeleteFileSystem
    "no deletion during a task": Rule(
        "BadRequest",
        "File system {system} cannot be deleted while data repository task {task} is {lifecycle}.",
        "model: DeleteFileSystem; CANCELING: https://github.com/aws/aws-parallelcluster/issues/2303",
    ),
}


def refusal(rule: str, **values: object) -> ServiceError:
    """Return the error of a request that breaks a rule."""
    return broken(RULES, rule, **values)
