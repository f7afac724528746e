"""V2's estimators as training jobs.

https://sagemaker.readthedocs.io/en/v2/api/training/estimators.html
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from orchestration.sagemaker_sdk import channels, sources
from orchestration.sagemaker_sdk.collected import Copying
from orchestration.sagemaker_sdk.defaults import configured_tags
from orchestration.sagemaker_sdk.findings import Findings, refuse_variables
from orchestration.sagemaker_sdk.v2 import attributes, distributing, shapes
from orchestration.sagemaker_sdk.v2.containers import container
from orchestration.sagemaker_sdk.v2.observability import observed
from orchestration.stages.training import Checkpoints, ModelOutput, TrainingJob
from orchestration.stages.training.channels import S3Channel
from orchestration.stages.training.cluster import Cluster, InstanceGroup, ManagedSpot
from orchestration.stages.training.observability import Experiment
from orchestration.stages.values import Source, Vpc

_EXPERIMENT = {
    "ExperimentName": "name",
    "TrialName": "trial",
    "TrialComponentDisplayName": "display_name",
    "RunName": "run",
}


def from_estimator(
    estimator: Any,
    inputs: object = None,
    *,
    name: str = "train",
    experiment_config: Mapping[str, str] | None = None,
    code: str | Path | None = None,
    include: Collection[str] = (),
) -> TrainingJob:
    """Convert an estimator to a training job that sends what ``estimator.fit(inputs, …)`` would.

    ``estimator`` is one of the SageMaker Python SDK's V2: a framework's, the generic ``Estimator``,
    or an ``AlgorithmEstimator``. Nothing is sent and nothing is changed. ``name`` is the stage's.
    ``code`` is an empty folder to collect code that is not in one folder (a script without
    ``source_dir``, or ``dependencies``); by default a temporary one, removed when the process ends.
    ``include`` names files and links of ``source_dir`` to send although they look like secrets or
    lead out of it.

    The remaining differences are listed in :data:`~orchestration.sagemaker_sdk.DIFFERENCES`.
    The role and the region are the pipeline's: see :func:`settings`.

    Raises :class:`~orchestration.errors.PipelineError` that names every attribute without a
    counterpart.
    """
    job, findings = converted(
        estimator,
        inputs,
        name=name,
        experiment_config=experiment_config,
        code=code,
        include=include,
    )
    findings.end()
    assert job is not None  # noqa: S101 - otherwise there was a finding
    return job


def converted(
    estimator: Any,
    inputs: object = None,
    *,
    name: str,
    experiment_config: Mapping[str, str] | None = None,
    code: str | Path | None = None,
    include: Collection[str] = (),
) -> tuple[TrainingJob | None, Findings]:
    """Convert as much of an estimator as can be; returns what is wrong, too."""
    findings = Findings("estimator", attributes.OF_FIELDS)
    if not attributes.checked(estimator, findings):
        return None, findings
    if refuse_variables(findings, {"inputs": inputs}):
        inputs = None
    estimator = shapes.shaped(estimator, findings)
    source = _source(estimator, code, include, findings)
    seen = observed(estimator, findings)
    hyperparameters = distributing.distributed(estimator, source is not None, findings)
    extra = _extra(estimator)
    fields: dict[str, Any] = {
        "name": name,
        "source": source,
        "log_level": estimator.container_log_level,
        "channels": _channels(estimator, inputs, findings),
        "debugger": seen.debugger,
        "profiler": seen.profiler,
        "tensorboard": seen.tensorboard,
        "strategy": hyperparameters.strategy,
        "hyperparameters": hyperparameters.own,
        "experiment": _experiment(experiment_config, findings),
        **container(estimator, findings),
        **_machines(estimator, findings),
        **_places(estimator, findings),
        **_options(estimator, inputs, findings),
        "extra_request": {**extra, **seen.extra, **hyperparameters.request()},
    }
    return findings.made("", lambda: TrainingJob(**fields)), findings


def settings(estimator: Any) -> dict[str, str]:
    """Read role and region of an estimator or a trainer, for ``Pipeline(**settings(…), …)``."""
    values = {
        "role": getattr(estimator, "role", None),
        "region": getattr(estimator.sagemaker_session, "boto_region_name", None),
    }
    return {key: value for key, value in values.items() if value is not None}


def _source(
    estimator: Any, code: str | Path | None, include: Collection[str], findings: Findings
) -> Source | None:
    if getattr(estimator, "git_config", None):
        return None
    script, directory = _text(estimator.entry_point), _text(estimator.source_dir)
    dependencies = list(estimator.dependencies or [])
    if not script:
        for name in ("source_dir", "dependencies"):
            if getattr(estimator, name):
                findings.add(name, "needs an entry_point, the script to start")
        return None
    if directory and directory.lower().startswith("s3://"):
        if dependencies:
            findings.add(
                "dependencies",
                "are ignored by the SDK if source_dir is in S3; put them into the archive",
            )
        return sources.in_s3(script, directory, "source_dir", findings)
    if directory and not dependencies:
        return sources.folder(script, directory, "source_dir", findings, include)
    copying = Copying(code, include)
    return sources.put_together(script, directory, dependencies, copying, findings)


def _text(value: Any) -> str | None:
    """Return a path as text."""
    return None if value is None else os.fspath(value)


def _channels(estimator: Any, inputs: object, findings: Findings) -> dict[str, channels.Made]:
    made = channels.from_inputs(inputs, findings)
    if estimator.model_uri:
        name = estimator.model_channel_name
        if name in made:
            findings.add("model_channel_name", f"{name!r} is also the name of an input")
        model = findings.made(
            "model_uri",
            lambda: S3Channel(
                uri=estimator.model_uri,
                content_type="application/x-sagemaker-model",
                input_mode="File",
            ),
        )
        if model is not None:
            made[name] = model
    return made


def _machines(estimator: Any, findings: Findings) -> dict[str, Any]:
    groups = tuple(
        InstanceGroup(
            name=group.instance_group_name,
            instance_type=group.instance_type,
            instance_count=group.instance_count,
        )
        for group in estimator.instance_groups or ()
    )
    if groups and (estimator.instance_type or estimator.instance_count):
        findings.add("instance_groups", "go without instance_type and instance_count; remove these")
    if not groups and not estimator.instance_type:
        findings.add_once("instance_type", "is missing; give it, or instance_groups")
    cluster = findings.made(
        "cluster.groups" if groups else "cluster",
        lambda: Cluster(
            instance_type=None if groups else estimator.instance_type,
            instance_count=None if groups else estimator.instance_count,
            groups=groups,
            volume_gib=estimator.volume_size,
            volume_kms_key=estimator.volume_kms_key,
            keep_alive_s=estimator.keep_alive_period_in_seconds,
            training_plan=estimator.training_plan,
        ),
    )
    spot = None
    if estimator.use_spot_instances and not estimator.max_wait:
        findings.add("max_wait", "is needed with use_spot_instances: seconds, at least max_run")
    elif estimator.use_spot_instances:
        spot = findings.made("spot", lambda: ManagedSpot(max_wait_s=estimator.max_wait))
    elif estimator.max_wait:
        findings.add("max_wait", "only has an effect with use_spot_instances; remove it")
    return {
        "cluster": cluster,
        "spot": spot,
        "max_runtime_s": estimator.max_run,
        "max_retries": estimator.max_retry_attempts,
    }


def _places(estimator: Any, findings: Findings) -> dict[str, Any]:
    output = findings.made(
        "output",
        lambda: ModelOutput(
            uri=attributes.output_path(estimator),
            kms_key=estimator.output_kms_key,
            compression="NONE" if estimator.disable_output_compression else None,
        ),
    )
    checkpoints = None
    if estimator.checkpoint_s3_uri:
        checkpoints = findings.made(
            "checkpoints",
            lambda: Checkpoints(
                uri=estimator.checkpoint_s3_uri, local_path=estimator.checkpoint_local_path
            ),
        )
    elif estimator.checkpoint_local_path:
        findings.add(
            "checkpoint_local_path", "is sent by the SDK only with a checkpoint_s3_uri; set one"
        )
    vpc = None
    if estimator.subnets or estimator.security_group_ids:
        vpc = findings.made(
            "vpc",
            lambda: Vpc(
                subnets=tuple(estimator.subnets or ()),
                security_groups=tuple(estimator.security_group_ids or ()),
            ),
        )
    return {"output": output, "checkpoints": checkpoints, "vpc": vpc}


def _options(estimator: Any, inputs: object, findings: Findings) -> dict[str, Any]:
    tags = [*(estimator.tags or ()), *configured_tags(estimator)]
    mode = estimator.input_mode
    config = getattr(inputs, "config", None)
    if isinstance(config, Mapping):
        # A single TrainingInput sets the mode of the whole job, too.
        mode = config.get("InputMode", mode)
    return {
        "input_mode": mode,
        "environment": dict(estimator.environment or {}),
        "metrics": _named(
            estimator.metric_definitions, "Name", "Regex", "metric_definitions", findings
        ),
        "tags": _named(tags, "Key", "Value", "tags", findings),
        "metrics_time_series": estimator.enable_sagemaker_metrics is True,
        "enable_network_isolation": bool(estimator.enable_network_isolation()),
        "encrypt_inter_container_traffic": bool(estimator.encrypt_inter_container_traffic),
        "entrypoint": tuple(estimator.container_entry_point or ()),
        "arguments": tuple(estimator.container_arguments or ()),
    }


def _named(entries: Any, key: str, value: str, path: str, findings: Findings) -> dict[str, str]:
    """Convert a list of pairs to a mapping."""
    named: dict[str, str] = {}
    for number, entry in enumerate(entries or ()):
        if entry[key] in named:
            findings.add(f"{path}[{number}]", f"names {entry[key]!r} a second time")
        for further in entry.keys() - {key, value}:
            findings.add(f"{path}[{number}].{further}", "is not a field of the request")
        named[entry[key]] = entry[value]
    return named


def _experiment(config: Mapping[str, str] | None, findings: Findings) -> Experiment | None:
    if not config:
        return None
    if not isinstance(config, Mapping):
        findings.add("experiment_config", f"expected a mapping, got {config!r:.80}")
        return None
    for key in config.keys() - _EXPERIMENT.keys():
        findings.add(f"experiment_config.{key}", "is not a field of an experiment's configuration")
    fields = {ours: config[theirs] for theirs, ours in _EXPERIMENT.items() if theirs in config}
    return findings.made("experiment", lambda: Experiment(**fields))


def _extra(estimator: Any) -> dict[str, Any]:
    """Return the settings that only the request has fields for."""
    algorithm: dict[str, Any] = {}
    if estimator.training_repository_access_mode is not None:
        config = {"TrainingRepositoryAccessMode": estimator.training_repository_access_mode}
        provider = estimator.training_repository_credentials_provider_arn
        if provider is not None:
            named = {"TrainingRepositoryCredentialsProviderArn": provider}
            config["TrainingRepositoryAuthConfig"] = named
        algorithm["TrainingImageConfig"] = config
    if estimator.enable_sagemaker_metrics is False:
        algorithm["EnableSageMakerMetricsTimeSeries"] = False
    placement = estimator.instance_placement_config
    switches = {
        "InfraCheckConfig": ("EnableInfraCheck", estimator.enable_infra_check),
        "RemoteDebugConfig": ("EnableRemoteDebug", estimator._enable_remote_debug),
        "SessionChainingConfig": (
            "EnableSessionTagChaining",
            estimator._enable_session_tag_chaining,
        ),
    }
    extra: dict[str, Any] = {"AlgorithmSpecification": algorithm} if algorithm else {}
    if placement is not None:
        extra["ResourceConfig"] = {"InstancePlacementConfig": placement}
    extra |= {field: {key: on} for field, (key, on) in switches.items() if on is not None}
    return extra
