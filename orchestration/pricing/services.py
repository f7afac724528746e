"""Lines of calls to other services than SageMaker: file systems, transfers, requests, alarms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from orchestration.catalog import rate
from orchestration.cleanup import KEEP
from orchestration.graph import Call, Guarded, stage_of
from orchestration.pricing.knowing import Known, Times, times
from orchestration.pricing.lasting import hours
from orchestration.pricing.lines import HOURS_A_MONTH, Line

_READS: Final = ("Get", "Head", "Select")
_THOUSAND: Final = 1000.0
_MILLION: Final = 1e6


def file_system(guard: Guarded, known: Known, often: Times) -> Iterator[Line]:
    """Yield the line of a file system that lives as long as a guard's body, and maybe longer."""
    request: Any = guard.acquire.operation.request
    stage = stage_of(guard.name)
    lustre: Mapping[str, Any] = request.get("LustreConfiguration") or {}
    key = ".".join(
        str(part)
        for part in (
            "lustre",
            known.value(lustre.get("DeploymentType")),
            known.value(lustre.get("PerUnitStorageThroughput")),
        )
        if part is not None
    )
    found = rate(key, known.region)
    capacity = known.number(request.get("StorageCapacity"))
    body, after = hours(guard.body, known), hours(guard.cleanup, known)
    keep = _kept_h(request, known)
    most = None if body.most is None or after.most is None else body.most + after.most + keep
    share = None if capacity is None else capacity / HOURS_A_MONTH
    lacks = ""
    if found is None:
        lacks = f"no price is known for {key.removeprefix('lustre.').replace('.', ' at ')}"
    elif body.expected is None:
        lacks = "how long the jobs take that read it"
    notes = ["without its creation, import and deletion"] if body.expected is not None else []
    notes += [f"at most {most:,.1f} h"] if most is not None else []
    notes += [f"kept for {keep:g} h"] if keep else []
    if lustre.get("MetadataConfiguration"):
        notes.append("without its metadata IOPS, whose price is not known")
    yield Line(
        stage=stage,
        what=f"FSx for Lustre, {'?' if capacity is None else f'{capacity:,.0f}'} GiB",
        rate=found,
        expected=times(often.expected, times(body.expected, share)),
        most=times(often.most, times(most, share)),
        lacks=lacks,
        notes=tuple(notes),
    )


def lived(guard: Guarded, known: Known, hours: float) -> Line:
    """Return the line of a file system that has been there for so many hours."""
    [line] = file_system(guard, known, Times())
    capacity = known.number(guard.acquire.operation.request.get("StorageCapacity"))
    quantity = times(capacity, hours / HOURS_A_MONTH)
    return replace(line, expected=quantity, most=quantity)


def _kept_h(request: Mapping[str, Any], known: Known) -> float:
    """Return the hours for which a file system outlives its run."""
    tags = request.get("Tags") or ()
    kept = [tag["Value"] for tag in tags if isinstance(tag, Mapping) and tag.get("Key") == KEEP]
    return (known.number(kept[0]) or 0.0) if kept else 0.0


def transfer(call: Call, mode: str, known: Known, often: Times) -> Iterator[Line]:
    """Yield the lines of one execution of a task of DataSync."""
    stage = stage_of(call.name)
    name = f"DataSync, {mode.lower()} mode"
    task = rate(f"datasync.{mode}.task", known.region)
    if task is not None:
        yield Line(stage=stage, what=name, rate=task, expected=often.expected, most=often.most)
    gb = known.assumptions.of(stage, "gb")
    yield Line(
        stage=stage,
        what=f"{name}, data",
        rate=rate(f"datasync.{mode}.gb", known.region),
        expected=times(often.expected, gb),
        most=times(often.most, gb),
        lacks="" if gb is not None else f"how much data; --assume {stage}.gb=NUMBER",
    )


def logs(call: Call, known: Known, often: Times) -> Iterator[Line]:
    """Yield the line of what a job writes to its log; none unless somebody says how much."""
    stage = stage_of(call.name)
    gb = known.assumptions.of(stage, "log_gb")
    if gb is not None:
        yield Line(
            stage=stage,
            what="logs",
            rate=rate("logs", known.region),
            expected=times(often.expected, gb),
            most=times(often.most, gb),
            notes=("logs are at most what --assume says",),
        )


def batch(call: Call, known: Known, often: Times) -> Iterator[Line]:
    """Yield the lines of a job of S3 Batch Operations."""
    stage = stage_of(call.name)
    job = rate("batch.job", known.region)
    yield Line(
        stage=stage, what="S3 Batch Operations", rate=job, expected=often.expected, most=often.most
    )
    count = known.assumptions.of(stage, "elements")
    millions = None if count is None else count / _MILLION
    yield Line(
        stage=stage,
        what="S3 Batch Operations, objects",
        rate=rate("batch.objects", known.region),
        expected=times(often.expected, millions),
        most=times(often.most, millions),
        lacks="" if count is not None else f"how many objects; --assume {stage}.elements=NUMBER",
    )


def requests(step: str, operation: str, known: Known, often: Times, pages: int = 1) -> Line:
    """Return the line of a request to S3."""
    reads = operation.startswith(_READS)
    stage = stage_of(step)
    return Line(
        stage=stage,
        what="S3 requests that read" if reads else "S3 requests that write or list",
        rate=rate("s3.read" if reads else "s3.write", known.region),
        expected=times(often.expected, 1 / _THOUSAND),
        most=times(often.most, pages / _THOUSAND),
        lacks=""
        if often.expected is not None
        else f"how many objects; --assume {stage}.elements=NUMBER",
        minor=True,
    )


def alarm(call: Call, known: Known, often: Times, count: int = 1) -> Line:
    """Return the line of alarms, which stay."""
    return Line(
        stage=stage_of(call.name),
        what="CloudWatch alarm",
        rate=rate("alarm", known.region),
        expected=times(often.expected, count),
        most=times(often.most, count),
        period="month",
    )


def followed(call: Call, known: Known, often: Times) -> Iterator[Line]:
    """Yield the line of the alarms of target tracking, one for each way that a number may go.

    https://docs.aws.amazon.com/autoscaling/application/userguide/application-auto-scaling-target-tracking.html
    """
    if call.operation.request.get("PolicyType") == "TargetTrackingScaling":
        yield alarm(call, known, often, 2)
