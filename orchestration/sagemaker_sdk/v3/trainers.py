"""V3's ``ModelTrainer`` as a training job.

https://sagemaker.readthedocs.io/en/stable/training/index.html
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from orchestration.sagemaker_sdk import channels
from orchestration.sagemaker_sdk.defaults import refuse_defaults
from orchestration.sagemaker_sdk.findings import Findings, refuse_variables
from orchestration.sagemaker_sdk.subclasses import (
    UNKNOWN,
    described,
    is_set,
    own_attributes,
    refuse_replaced,
)
from orchestration.sagemaker_sdk.v3 import attributes, hyperparameters
from orchestration.sagemaker_sdk.v3.scripts import script
from orchestration.sagemaker_sdk.v3.shapes import plain, setting
from orchestration.stages.training import Checkpoints, ModelOutput, TrainingJob
from orchestration.stages.training.cluster import Cluster, InstanceGroup, Machines, ManagedSpot
from orchestration.stages.training.observability import TensorBoard
from orchestration.stages.values import Vpc


def from_model_trainer(
    model_trainer: Any,
    input_data_config: Any = None,
    *,
    name: str = "train",
    code: str | Path | None = None,
    toolkit: bool | None = None,
    include: Collection[str] = (),
) -> TrainingJob:
    """Convert to a training job that does what ``model_trainer.train(input_data_config)`` would.

    Without source code it sends the same request. With source code V3 brings its own launchers
    into any container; here the SageMaker training toolkit in the container starts the script.
    AWS's framework containers have it; pass ``toolkit=True`` if your own image has it. ``name`` is
    the stage's. ``code`` is an empty folder for a copy of the code without files that
    ``ignore_patterns`` exclude; by default a temporary one, removed when the process ends.
    ``include`` names files and links of ``source_dir`` to send although they look like secrets or
    lead out of it.

    The remaining differences are listed in :data:`~orchestration.sagemaker_sdk.DIFFERENCES`.
    The role and the region are the pipeline's: see :func:`settings`.

    Raises :class:`~orchestration.errors.PipelineError` that names every setting without a
    counterpart.
    """
    findings = Findings("model_trainer", attributes.OF_FIELDS)
    if not _check(model_trainer, input_data_config, findings):
        findings.end()
    started = script(model_trainer, code, toolkit, findings, include=include)
    fields: dict[str, Any] = {
        "name": name,
        "source": started.source,
        "framework": started.framework,
        "strategy": started.strategy,
        "image": setting(model_trainer, "training_image"),
        "algorithm": setting(model_trainer, "algorithm_name"),
        "channels": _channels(model_trainer, input_data_config, findings),
        **_machines(model_trainer, findings),
        **_places(model_trainer, findings),
        **_options(model_trainer, findings),
        **hyperparameters.read(model_trainer, started.source is not None, findings),
    }
    job = findings.made("", lambda: TrainingJob(**fields))
    findings.end()
    assert job is not None  # noqa: S101 - otherwise there was a finding
    return job


def _check(trainer: Any, inputs: Any, findings: Findings) -> bool:
    """Report settings without a counterpart, and return whether the others can be read."""
    kinds = [kind.__name__ for kind in type(trainer).__mro__]
    if "ModelTrainer" not in kinds:
        got = described(trainer)
        findings.add("", f"is {got}, not a ModelTrainer of the SageMaker Python SDK's V3")
        return False
    refuse_replaced(trainer, (), findings)
    if getattr(trainer.training_mode, "name", None) != "SAGEMAKER_TRAINING_JOB":
        findings.add(
            "training_mode",
            "is the SDK's local mode; orchestrate run runs a pipeline on this machine",
        )
    known = attributes.CONVERTED | attributes.SILENT | attributes.REFUSED.keys()
    for field in type(trainer).model_fields.keys() - known - own_attributes(type(trainer)):
        value = setting(trainer, field)
        if is_set(value):
            findings.add(field, f"is {value!r:.80}, and {UNKNOWN}")
    for field, reason in attributes.REFUSED.items():
        if setting(trainer, field):
            findings.add(field, f"has no counterpart: {reason}")
    refuse_defaults(trainer, findings)
    values = {name: setting(trainer, name) for name in attributes.CONVERTED}
    return not refuse_variables(
        findings, {**values, "input_data_config": inputs or values["input_data_config"]}
    )


def _channels(trainer: Any, inputs: Any, findings: Findings) -> dict[str, channels.Made]:
    """Return the trainer's own inputs, overridden by those passed to ``train()``."""
    listed = _by_name(setting(trainer, "input_data_config"), findings) | _by_name(inputs, findings)
    made = {}
    for name, entry in listed.items():
        path = f"input_data_config[{name!r}]"
        config = _channel(entry, path, findings)
        channel = None if config is None else channels.from_request(config, path, findings)
        if channel is not None:
            made[name] = channel
    return made


def _by_name(inputs: Any, findings: Findings) -> dict[str, Any]:
    listed: dict[str, Any] = {}
    for entry in inputs if isinstance(inputs, list | tuple) else [inputs]:
        name = getattr(entry, "channel_name", None)
        if name is None and entry is not None:
            got = described(entry)
            findings.add("input_data_config", f"is {got}; give a list of InputData and Channel")
        elif name in listed:
            findings.add(f"input_data_config[{name!r}]", "is the name of two inputs; rename one")
        elif name is not None:
            listed[name] = entry
    return listed


def _channel(entry: Any, path: str, findings: Findings) -> Mapping[str, Any] | None:
    """Convert an entry to the form of ``CreateTrainingJob``."""
    if type(entry).__name__ != "InputData":
        converted: Mapping[str, Any] = plain(entry)
        return converted
    source = entry.data_source
    config: dict[str, Any] = {}
    if isinstance(source, str):
        if not source.startswith("s3://"):
            findings.add(path, f"{source!r} is on this machine; upload it, and give s3://…")
            return None
        s3 = {
            "S3DataType": "S3Prefix",
            "S3Uri": source,
            "S3DataDistributionType": "FullyReplicated",
        }
        config = {"DataSource": {"S3DataSource": s3}, "InputMode": "File"}
    elif type(source).__name__ in ("S3DataSource", "FileSystemDataSource"):
        config = {"DataSource": {type(source).__name__: plain(source)}}
    else:
        findings.add(path, f"is a {type(source).__name__}; give an S3 URI or a data source")
        return None
    if entry.content_type:
        config["ContentType"] = entry.content_type
    return config


def _machines(trainer: Any, findings: Findings) -> dict[str, Any]:
    compute, stopping = trainer.compute, trainer.stopping_condition
    preferences = setting(compute, "instance_preferences") or ()
    for number, each in enumerate(preferences):
        if setting(each, "training_plan_arns"):
            findings.add(
                f"compute.instance_preferences[{number}].training_plan_arns",
                "has no counterpart; give the job one training_plan_arn",
            )
    cluster = findings.made(
        "compute",
        lambda: Cluster(
            instance_type=setting(compute, "instance_type"),
            instance_count=setting(compute, "instance_count"),
            groups=tuple(
                InstanceGroup(
                    name=each.instance_group_name,
                    instance_type=each.instance_type,
                    instance_count=each.instance_count,
                )
                for each in setting(compute, "instance_groups") or ()
            ),
            preferences=tuple(
                Machines(
                    instance_type=each.instance_type,
                    instance_count=setting(each, "instance_count"),
                )
                for each in preferences
            ),
            volume_gib=setting(compute, "volume_size_in_gb"),
            volume_kms_key=setting(compute, "volume_kms_key_id"),
            keep_alive_s=setting(compute, "keep_alive_period_in_seconds"),
            training_plan=setting(compute, "training_plan_arn"),
            max_pending_s=setting(stopping, "max_pending_time_in_seconds"),
        ),
    )
    wait = setting(stopping, "max_wait_time_in_seconds")
    spot = bool(setting(compute, "enable_managed_spot_training"))
    if spot and wait is None:
        findings.add(
            "stopping_condition.max_wait_time_in_seconds",
            "is needed with managed spot training: seconds, at least max_runtime_in_seconds",
        )
    elif wait is not None and not spot:
        findings.add(
            "stopping_condition.max_wait_time_in_seconds",
            "only has an effect with managed spot training; remove it",
        )
    return {
        "cluster": cluster,
        "spot": ManagedSpot(max_wait_s=wait) if spot and wait is not None else None,
        "max_runtime_s": setting(stopping, "max_runtime_in_seconds"),
    }


def _places(trainer: Any, findings: Findings) -> dict[str, Any]:
    output, networking = trainer.output_data_config, trainer.networking
    checkpoints = setting(trainer, "checkpoint_config")
    board = setting(trainer, "_tensorboard_output_config")
    if board is not None and not setting(board, "s3_output_path"):
        findings.add("_tensorboard_output_config.s3_output_path", "is needed: s3://bucket/prefix")
        board = None
    subnets = setting(networking, "subnets") or ()
    groups = setting(networking, "security_group_ids") or ()
    return {
        "output": findings.made(
            "output_data_config",
            lambda: ModelOutput(
                uri=setting(output, "s3_output_path"),
                kms_key=setting(output, "kms_key_id"),
                compression=setting(output, "compression_type"),
            ),
        ),
        "checkpoints": None
        if checkpoints is None
        else Checkpoints(
            uri=setting(checkpoints, "s3_uri"), local_path=setting(checkpoints, "local_path")
        ),
        "tensorboard": None
        if board is None
        else TensorBoard(uri=board.s3_output_path, local_path=setting(board, "local_path")),
        "vpc": findings.made("networking", lambda: Vpc(subnets=subnets, security_groups=groups))
        if subnets or groups
        else None,
    }


def _options(trainer: Any, findings: Findings) -> dict[str, Any]:
    networking = trainer.networking
    encrypted = setting(networking, "enable_inter_container_traffic_encryption")
    retries = setting(trainer, "_retry_strategy")
    return {
        "input_mode": trainer.training_input_mode,
        "environment": dict(setting(trainer, "environment") or {}),
        "metrics": _named(trainer, "_metric_definitions", "Name", "Regex", findings),
        "tags": _named(trainer, "tags", "Key", "Value", findings),
        "max_retries": None if retries is None else retries.maximum_retry_attempts,
        "enable_network_isolation": bool(setting(networking, "enable_network_isolation")),
        "encrypt_inter_container_traffic": bool(encrypted),
    }


def _named(trainer: Any, path: str, key: str, value: str, findings: Findings) -> dict[str, str]:
    """Convert a list of pairs to a mapping."""
    named: dict[str, str] = {}
    for number, entry in enumerate(plain(setting(trainer, path)) or ()):
        if entry[key] in named:
            findings.add(f"{path}[{number}]", f"names {entry[key]!r} a second time")
        named[entry[key]] = entry[value]
    return named
