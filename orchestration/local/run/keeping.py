"""A run's logs and objects, kept in a folder after its account is gone.

A folder of a run holds ``report.json``, ``logs/<stage>/<job>.log`` and ``s3/<bucket>/<key>``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestration.errors import LocalError
from orchestration.local.run.preparation import objects

if TYPE_CHECKING:
    from orchestration.local.account.records import RecordedCall
    from orchestration.local.run.report import RunReport
    from orchestration.local.server.embedded import EmbeddedAws

HOME: Final = ".orchestration"
"""The folder beside a pipeline for what runs on this machine leave."""
RUNS: Final = "runs"
REPORT: Final = "report.json"
FAILED: Final = "last-failed"
"""The name under which the newest run that failed has its logs kept, whether or not asked to."""
_SERVING: Final = {
    "CreateEndpoint": "EndpointName",
    "UpdateEndpoint": "EndpointName",
    "CreateInferenceComponent": "InferenceComponentName",
    "UpdateInferenceComponent": "InferenceComponentName",
}
"""The field with the name of what serves, by the call that creates or changes it."""
_MADE_FOR: Final = {"CreateEndpointConfig": "EndpointConfigName", "CreateModel": "ModelName"}
"""The field with the name of what an update serves, which has no tags itself."""
_STAGE: Final = "orchestration:stage"
_OURS: Final = ("/.journal/", "/source/")
"""Parts of keys that a run writes for itself, and copies of the code."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that was kept."""

    folder: Path
    run_id: str
    """The run's name; of a folder whose report can't be read, the folder's."""
    started: str
    """The time in ISO 8601; empty where the report can't be read."""

    @classmethod
    def of(cls, folder: Path) -> Kept:
        """Read what a folder is of."""
        try:
            told = json.loads((folder / REPORT).read_text(encoding="utf-8"))
            return cls(folder, str(told["run_id"]), str(told["started"]))
        except (OSError, ValueError, LookupError, TypeError):
            return cls(folder, folder.name, "")

    def is_of(self, report: RunReport) -> bool:
        """Return whether it is of this very run."""
        return (self.run_id, self.started) == (report.run_id, report.started.isoformat())


def home(pipeline: Path | None) -> Path:
    """Return the folder for what runs of a pipeline leave, which git ignores."""
    folder = (Path() if pipeline is None else pipeline.parent) / HOME
    folder.mkdir(parents=True, exist_ok=True)
    ignored = folder / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n", encoding="utf-8")
    return folder


def keep(
    aws: EmbeddedAws, report: RunReport, folder: Path, *, uploads: Mapping[str, Path]
) -> tuple[str, ...]:
    """Write a run's report, logs and objects into a folder; returns the URIs of the objects.

    Objects that were uploaded for the run, its journal and copies of its code are left out. What an
    earlier run of that name left in the folder goes.
    """
    keep_logs(aws, report, folder)
    return tuple(_objects(aws, folder / "s3", uploads))


def keep_logs(aws: EmbeddedAws, report: RunReport, folder: Path) -> None:
    """Write a run's report and logs into a folder, in the place of what it held of a run."""
    if (folder / REPORT).is_file():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / REPORT).write_text(json.dumps(report.to_json(), indent=2, default=str), "utf-8")
    for stage, job in logged(report):
        file = folder / "logs" / stage / f"{job}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(aws.logs(job), encoding="utf-8")


def logged(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield stage and name of what has a log: jobs, and what serves that the run created."""
    for stage in report.stages:
        for job in stage.job_names:
            yield stage.name, job
    yield from serving(report.calls)


def serving(calls: Iterable[RecordedCall]) -> Iterator[tuple[str, str]]:
    """Yield stage and name of the endpoints and inference components that a run has changed."""
    made: dict[object, str] = {}
    seen = set()
    for call in calls:
        if call.error_code is not None:
            continue
        request = call.request
        stage = {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}.get(_STAGE)
        if call.operation in _MADE_FOR and stage is not None:
            made[request[_MADE_FOR[call.operation]]] = stage
        if call.operation in _SERVING:
            served = request.get("EndpointConfigName", request.get("Specification", {}))
            model = served.get("ModelName") if isinstance(served, Mapping) else served
            found = (stage or made.get(model, ""), str(request[_SERVING[call.operation]]))
            if found not in seen:
                seen.add(found)
                yield found


def _objects(aws: EmbeddedAws, folder: Path, uploads: Mapping[str, Path]) -> Iterator[str]:
    given = {uri for upload, path in uploads.items() for uri, _ in objects(upload, path)}
    s3 = aws.client("s3")
    for bucket, key in _keys(aws.state()["s3"]):
        uri = f"s3://{bucket}/{key}"
        if uri in given or any(part in f"/{key}" for part in _OURS) or not _is_path(key):
            continue
        file = folder / bucket / key
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            continue  # In S3, `a` and `a/b` can both be objects.
        yield uri


def _keys(buckets: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    return ((bucket, key) for bucket, contents in buckets.items() for key in contents)


def _is_path(key: str) -> bool:
    """Return whether a key names a file below a folder."""
    return all(part not in ("", ".", "..") for part in key.split("/"))


def run_folder(pipeline: Path | None, name: str, run_id: str) -> Path:
    """Return the folder of a run of the pipeline of that name.

    Raises :class:`~orchestration.errors.LocalError` if the run's name names no folder in it, or
    the folder of the newest run that failed.
    """
    if run_id in ("", ".", "..") or Path(run_id).name != run_id:
        raise LocalError(
            f"run {run_id!r} can't be kept: its folder has the run's name, so it must not hold a /"
        )
    if run_id == FAILED:
        raise LocalError(
            f"run {run_id!r} can't be kept: the newest run that failed has its logs in the folder "
            "of this name; give another"
        )
    return home(pipeline) / RUNS / name / run_id


def failed_folder(pipeline: Path | None, name: str) -> Path:
    """Return the folder for the logs of the newest run that failed."""
    return (Path() if pipeline is None else pipeline.parent) / HOME / RUNS / name / FAILED


def kept_runs(pipeline: Path | None, name: str) -> list[Kept]:
    """Return the runs of a pipeline that were kept, the newest first."""
    beside = Path() if pipeline is None else pipeline.parent
    found: Iterable[Path] = (beside / HOME / RUNS / name).glob(f"*/{REPORT}")
    newest = sorted(found, key=lambda each: each.stat().st_mtime)[::-1]
    return [Kept.of(each.parent) for each in newest]
