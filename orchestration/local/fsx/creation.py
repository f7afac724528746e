"""The checks of a request to create a file system."""

from __future__ import annotations

from typing import Final

from orchestration.local.account import storage
from orchestration.local.account.protocol import JsonObject
from orchestration.local.account.storage import Location
from orchestration.local.fsx.rules import refusal

_THROUGHPUTS: Final = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
_STORAGE: Final = {
    "SCRATCH_1": ("SSD",),
    "SCRATCH_2": ("SSD",),
    "PERSISTENT_1": ("SSD", "HDD"),
    "PERSISTENT_2": ("SSD", "INTELLIGENT_TIERING"),
}
_HDD_STEPS: Final = {12: 6000, 40: 1800}
_SSD_IOPS: Final = (1500, 3000, 6000, *range(12_000, 192_001, 12_000))
_TIERED_IOPS: Final = (6000, 12_000)
_TIERED_STEP: Final = 4000


def deployment(request: JsonObject) -> str:
    """Return the deployment type that a request asks for."""
    return str(_lustre(request).get("DeploymentType", "SCRATCH_1"))


def version(request: JsonObject) -> str:
    """Return the version of Lustre that a request asks for, or the service's default."""
    if "FileSystemTypeVersion" in request:
        return str(request["FileSystemTypeVersion"])
    if deployment(request) != "PERSISTENT_2":
        return "2.10"
    return "2.15" if "MetadataConfiguration" in _lustre(request) else "2.12"


def check(request: JsonObject) -> None:
    """Raise the service's error if a request breaks a rule."""
    if len(request["SubnetIds"]) != 1:
        raise refusal("one subnet")
    kind, stored = deployment(request), _storage(request)
    if stored not in _STORAGE[kind]:
        raise refusal("storage types", storage=stored, deployment=kind)
    _check_throughput(request)
    _check_capacity(request)
    _check_version(request)
    _check_metadata(request)
    _check_tiering(request)
    _check_import_path(request)
    if _lustre(request).get("AutomaticBackupRetentionDays", 0) and kind.startswith("SCRATCH"):
        raise refusal("backups", deployment=kind)
    if (stored == "HDD") != ("DriveCacheType" in _lustre(request)):
        raise refusal("drive cache of HDD")


def _lustre(request: JsonObject) -> JsonObject:
    lustre: JsonObject = request.get("LustreConfiguration", {})
    return lustre


def _storage(request: JsonObject) -> str:
    return str(request.get("StorageType", "SSD"))


def _check_throughput(request: JsonObject) -> None:
    kind, stored = deployment(request), _storage(request)
    throughput = _lustre(request).get("PerUnitStorageThroughput")
    valid = _THROUGHPUTS.get((kind, stored))
    if valid is None and throughput is not None:
        raise refusal("throughput is for persistent", deployment=kind, storage=stored)
    if valid is not None and throughput is None:
        raise refusal("throughput is required", deployment=kind)
    if valid is not None and throughput not in valid:
        raise refusal("throughput exists", throughput=throughput, valid=_listed(valid))


def _check_capacity(request: JsonObject) -> None:
    capacity = request.get("StorageCapacity", 0)
    match deployment(request), _storage(request):
        case _, "INTELLIGENT_TIERING":
            if "StorageCapacity" in request:
                raise refusal("no capacity with tiering")
        case _, "HDD":
            step = _HDD_STEPS[_lustre(request)["PerUnitStorageThroughput"]]
            if not capacity or capacity % step:
                raise refusal("capacity of HDD", capacity=capacity, step=step)
        case "SCRATCH_1", _:
            if capacity not in (1200, 2400) and (not capacity or capacity % 3600):
                raise refusal("capacity of SCRATCH_1", capacity=capacity)
        case _:
            if capacity != 1200 and (not capacity or capacity % 2400):
                raise refusal("capacity of SSD", capacity=capacity)


def _check_version(request: JsonObject) -> None:
    asked = version(request)
    if asked not in ("2.10", "2.12", "2.15"):
        raise refusal("versions", version=asked)
    if deployment(request) == "PERSISTENT_2" and asked == "2.10":
        raise refusal("version of PERSISTENT_2")
    if "MetadataConfiguration" in _lustre(request) and asked != "2.15":
        raise refusal("version of metadata", version=asked)


def _check_metadata(request: JsonObject) -> None:
    kind, stored = deployment(request), _storage(request)
    metadata = _lustre(request).get("MetadataConfiguration")
    if _lustre(request).get("EfaEnabled") and (kind != "PERSISTENT_2" or metadata is None):
        raise refusal("EFA")
    if metadata is None:
        return
    if kind != "PERSISTENT_2":
        raise refusal("metadata is for PERSISTENT_2", deployment=kind)
    iops, valid = metadata.get("Iops"), _SSD_IOPS if stored == "SSD" else _TIERED_IOPS
    if metadata["Mode"] == "AUTOMATIC" and (iops is not None or stored != "SSD"):
        raise refusal("automatic metadata")
    if iops is not None and iops not in valid:
        raise refusal("metadata IOPS", iops=iops, valid=_listed(valid))


def _check_tiering(request: JsonObject) -> None:
    tiered = _storage(request) == "INTELLIGENT_TIERING"
    throughput = _lustre(request).get("ThroughputCapacity")
    right = throughput is not None and throughput % _TIERED_STEP == 0
    if (tiered and not right) or (not tiered and throughput is not None):
        raise refusal("tiered throughput")
    if tiered != ("DataReadCacheConfiguration" in _lustre(request)):
        raise refusal("tiered cache")


def _check_import_path(request: JsonObject) -> None:
    path = _lustre(request).get("ImportPath")
    if path and deployment(request) == "PERSISTENT_2":
        raise refusal("import path of PERSISTENT_2")
    if path and not storage.bucket_exists(Location.parse(path).bucket):
        raise refusal("import path exists", path=path)


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))
