"""Fields of a training job that V3's trainer has no counterpart for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.sagemaker_sdk.findings import Findings
from orchestration.stages.training import TrainingJob
from orchestration.stages.training.observability import Debugger, Profiler
from orchestration.stages.values import Source

_DEFAULTS: Mapping[str, tuple[Any, str]] = {
    "debugger": (Debugger(), "V3 does not support the Debugger"),
    "profiler": (Profiler(), "V3 does not support the profiler"),
}
"""Settings that V2's estimators add to a job by themselves, with the reason that V3 does not."""
_WITHOUT = {
    "entrypoint": "V3 sets the container's entry point itself",
    "arguments": "V3 sets the arguments of the container's entry point itself",
    "experiment": "V3 takes the experiment from the run that it is called in",
    "wait_for_capacity_h": "V3 sends one request",
}
_FURTHER = {
    "AlgorithmSpecification": ["TrainingImageConfig"],
    "InfraCheckConfig": ["EnableInfraCheck"],
    "ModelPackageConfig": None,
    "RemoteDebugConfig": ["EnableRemoteDebug"],
    "ResourceConfig": ["InstancePlacementConfig"],
    "SessionChainingConfig": ["EnableSessionTagChaining"],
}
"""Fields of an ``extra_request`` that V3's trainer has arguments for; None: all of them."""


def check(job: TrainingJob, findings: Findings) -> None:
    """Report the fields of a job that V3 has no counterpart for."""
    for path, _ in job.references():
        findings.add(path, "is a reference, which only a pipeline can follow; set the value")
    for name, reason in _WITHOUT.items():
        if getattr(job, name) not in (None, False, (), {}):
            findings.add(name, f"has no counterpart: {reason}")
    for path in _further(job):
        findings.add(f"extra_request.{path}", "has no counterpart: V3 accepts no further fields")
    if job.strategy.kind == "auto":
        findings.add("strategy", "is picked when the pipeline is loaded; name the strategy itself")
    if job.log_level != 20:
        findings.add("log_level", "has no counterpart: V3's drivers take no level")
    if job.cluster.fallbacks:
        findings.add(
            "cluster.fallbacks",
            "have no counterpart: a ModelTrainer is one job; use "
            "cluster.preferences, or several trainers",
        )
    if job.source is not None:
        _check_code(job.source, findings)


def _check_code(source: Source, findings: Findings) -> None:
    if source.uri is None and source.directory is None and source.archive is None:
        findings.add("source", "names neither a folder nor an archive nor a place in S3")
    if source.dependencies:
        findings.add(
            "source.dependencies",
            "have no counterpart: a ModelTrainer sends one folder; copy them into it, and remove "
            "this field",
        )
    if source.runtime:
        findings.add(
            "source.runtime",
            "has no counterpart: a ModelTrainer sends the folder as it is; copy the runtime into "
            "it with `orchestrate vendor-runtime DIRECTORY`, and remove this field",
        )


def _further(job: TrainingJob) -> Iterator[str]:
    """Yield the fields of an ``extra_request`` that V3 has no argument for."""
    for field, value in job.extra_request.items():
        known = _FURTHER.get(field, ())
        if field == "HyperParameters" and job.source is not None:
            # They are JSON, as V3 makes it of lists and mappings; the toolkit's own are no use.
            known = [name for name in value if not name.startswith("sagemaker_")]
        if known is not None:
            yield from (f"{field}.{name}" for name in value if name not in known)


def _is_trainium(job: TrainingJob) -> bool:
    """Return whether V2's estimators turn the profiler off by themselves."""
    return str(job.cluster.instance_type).startswith("ml.trn")


def left_out(job: TrainingJob, findings: Findings) -> list[str]:
    """Return the defaults of V2 to leave out, and report other settings of the same kind."""
    names = ["metrics_time_series"] if job.metrics_time_series else []
    for name, (default, reason) in _DEFAULTS.items():
        value = getattr(job, name)
        if value is None:
            continue
        # V2's estimators say the output's place here as well.
        same_place = value.uri is None or value.uri == job.output.uri
        if name == "profiler" and _is_trainium(job):
            default = default.model_copy(update={"enabled": False})
        if same_place and value.model_copy(update={"uri": None}) == default:
            names.append(name)
        else:
            findings.add(name, f"has no counterpart: {reason}")
    return sorted(names)
