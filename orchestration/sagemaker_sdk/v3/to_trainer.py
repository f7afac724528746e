"""A training job as V3's ``ModelTrainer``.

https://sagemaker.readthedocs.io/en/stable/training/index.html
"""

from __future__ import annotations

import json
import typing
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from orchestration.errors import PipelineError
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.v3 import unsupported
from orchestration.sagemaker_sdk.v3.launchers import class_of, launched
from orchestration.stages.training import TrainingJob
from orchestration.stages.training.container import deciding_type
from orchestration.strategies import image_distribution

T = TypeVar("T")


def to_model_trainer(
    training_job: TrainingJob,
    model_trainer: type[T],
    *,
    role: str,
    session: Any = None,
    region: str | None = None,
    base_job_name: str | None = None,
) -> T:
    """Convert a training job to a ``ModelTrainer`` that does the same.

    ``model_trainer`` is V3's class, which the caller imports: ``to_model_trainer(job, ModelTrainer,
    role=…)``. ``session`` is V3's; a framework's image is looked up in its region, or in
    ``region``. If the job keeps output or checkpoints at the run's own location, V3 chooses one.

    The remaining differences are listed in :data:`~orchestration.sagemaker_sdk.DIFFERENCES`.

    Raises :class:`~orchestration.errors.PipelineError` that names every field of the job without a
    counterpart in V3, including references, since a ``ModelTrainer`` has no other stages. Warns of
    defaults of V2's estimators (Debugger, profiler, metrics as time series), which are left out.
    """
    findings = Findings("training_job")
    unsupported.check(training_job, findings)
    dropped = unsupported.left_out(training_job, findings)
    findings.end()
    if dropped:
        names = ", ".join(dropped)
        warnings.warn(f"V3 has no {names}; left out, being defaults of V2", stacklevel=2)
    where = region or getattr(session, "boto_region_name", None)
    arguments = {
        "sagemaker_session": session,
        "role": role,
        "base_job_name": base_job_name or training_job.name.replace("_", "-"),
        **_settings(training_job),
        "checkpoint_config": _checkpoints(training_job, model_trainer),
        "output_data_config": _output(training_job, model_trainer),
        "distributed": launched(training_job, model_trainer, findings),
        "training_image": _image(training_job, where, findings),
    }
    findings.end()
    fields = {name: value for name, value in arguments.items() if value not in (None, [], {})}
    trainer: Any = model_trainer(**fields)
    return typing.cast(T, _further(training_job, trainer))


def _settings(job: TrainingJob) -> dict[str, Any]:
    """Return arguments of the trainer, from which Pydantic builds its objects."""
    return {
        "compute": _compute(job),
        "stopping_condition": _stopping(job),
        "training_input_mode": job.input_mode,
        "environment": dict(job.environment),
        "hyperparameters": {**job.hyperparameters, **_encoded(job)},
        "input_data_config": [
            _channel(name, each.request()) for name, each in job.channels.items()
        ],
        "tags": [{"key": key, "value": value} for key, value in job.tags.items()],
        "networking": _networking(job),
        "source_code": _source_code(job),
        "algorithm_name": job.algorithm,
        "training_image_config": _extra(job, "AlgorithmSpecification").get("training_image_config"),
        "model_package_config": _extra(job, "ModelPackageConfig"),
    }


def _extra(job: TrainingJob, field: str) -> dict[str, Any]:
    """Return a field of the ``extra_request`` in V3's spelling."""
    given: dict[str, Any] = _snaked(job.extra_request.get(field, {}))
    return given


def _encoded(job: TrainingJob) -> dict[str, Any]:
    """Return the hyperparameters that are more than a scalar."""
    given = job.extra_request.get("HyperParameters", {})
    return {name: json.loads(text) for name, text in given.items()}


def _checkpoints(job: TrainingJob, trainer: Any) -> Any:
    if job.checkpoints is None or job.checkpoints.uri is None:
        return None
    kept: dict[str, Any] = {
        "s3_uri": job.checkpoints.uri,
        "local_path": job.checkpoints.local_path,
    }
    fields = {name: value for name, value in kept.items() if value is not None}
    return _built(trainer, "with_checkpoint_config", fields)


def _compute(job: TrainingJob) -> dict[str, Any]:
    cluster = job.cluster
    fields: dict[str, Any] = {
        "volume_size_in_gb": cluster.volume_gib,
        "volume_kms_key_id": cluster.volume_kms_key,
        "keep_alive_period_in_seconds": cluster.keep_alive_s,
        "training_plan_arn": cluster.training_plan,
        "instance_placement_config": _extra(job, "ResourceConfig").get("instance_placement_config"),
        "enable_managed_spot_training": True if job.spot is not None else None,
    }
    if cluster.instance_type is not None:
        fields["instance_type"] = cluster.instance_type
        fields["instance_count"] = cluster.instance_count or 1
    if cluster.groups:
        fields["instance_groups"] = [
            {
                "instance_group_name": group.name,
                "instance_type": group.instance_type,
                "instance_count": group.instance_count,
            }
            for group in cluster.groups
        ]
    if cluster.preferences:
        fields |= _preferences(job)
    return {name: value for name, value in fields.items() if value is not None}


def _preferences(job: TrainingJob) -> dict[str, Any]:
    request = job.cluster.request(None)
    listed = [
        {_snake(key): value for key, value in each.items()}
        for each in request["InstancePreferences"]
    ]
    count = {"instance_count": request["InstanceCount"]} if "InstanceCount" in request else {}
    return {"instance_preferences": listed, **count}


def _stopping(job: TrainingJob) -> dict[str, Any]:
    fields = {
        "max_runtime_in_seconds": job.max_runtime_s,
        "max_wait_time_in_seconds": None if job.spot is None else job.spot.max_wait_s,
        "max_pending_time_in_seconds": job.cluster.max_pending_s,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _networking(job: TrainingJob) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if job.vpc is not None:
        fields["subnets"] = list(job.vpc.subnets)
        fields["security_group_ids"] = list(job.vpc.security_groups)
    if job.enable_network_isolation:
        fields["enable_network_isolation"] = True
    if job.encrypt_inter_container_traffic:
        fields["enable_inter_container_traffic_encryption"] = True
    return fields


def _output(job: TrainingJob, trainer: Any) -> Any:
    fields = {
        "s3_output_path": job.output.uri,
        "kms_key_id": job.output.kms_key,
        # V3 sends GZIP by default, which is SageMaker's default too.
        "compression_type": job.output.compression,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    # The request's own class wants a place; of its subclasses, the trainer's takes the default.
    [kind] = class_of(trainer, "output_data_config").__subclasses__()
    return kind(**given) if given else None


def _channel(name: str, request: Mapping[str, Any]) -> dict[str, Any]:
    return {"channel_name": name, **{_snake(key): _snaked(value) for key, value in request.items()}}


def _source_code(job: TrainingJob) -> dict[str, Any] | None:
    source = job.source
    if source is None:
        return None
    fields = {
        "source_dir": source.uri or source.directory or source.archive,
        "entry_script": source.entry_point,
    }
    installs = source.directory is not None and _holds_requirements(source.directory)
    return fields | ({"requirements": "requirements.txt"} if installs else {})


def _holds_requirements(directory: str) -> bool:
    from pathlib import Path

    return (Path(directory) / "requirements.txt").is_file()


def _image(job: TrainingJob, region: str | None, findings: Findings) -> Any:
    if job.image is not None or job.framework is None:
        return job.image
    if region is None:
        findings.add("framework", "has a different image in each region; pass region= or a session")
        return None
    types = tuple(each.instance_type for each in job.cluster.machines())
    try:
        return job.framework.image(
            region, deciding_type(types), image_distribution(job.distribution)
        )
    except PipelineError as error:
        findings.under("framework", error.problems)
        return None


def _built(trainer: Any, method: str, fields: Mapping[str, Any]) -> Any:
    """Build the argument of one of the trainer's ``with_…`` methods."""
    [hint] = [
        hint
        for name, hint in typing.get_type_hints(getattr(trainer, method)).items()
        if name not in ("return", "self")
    ]
    kinds = [each for each in typing.get_args(hint) if each is not type(None)] or [hint]
    return kinds[0](**fields)


def _further(job: TrainingJob, trainer: Any) -> Any:
    """Apply the settings that a trainer accepts after construction."""
    kind = type(trainer)
    if job.max_retries is not None:
        fields = {"maximum_retry_attempts": job.max_retries}
        trainer.with_retry_strategy(_built(kind, "with_retry_strategy", fields))
    for field in ("InfraCheckConfig", "RemoteDebugConfig", "SessionChainingConfig"):
        if given := _extra(job, field):
            method = f"with_{_snake(field)}"
            getattr(trainer, method)(_built(kind, method, given))
    if job.tensorboard is not None:
        board = {"s3_output_path": job.tensorboard.uri, "local_path": job.tensorboard.local_path}
        built = _built(
            kind,
            "with_tensorboard_output_config",
            {name: value for name, value in board.items() if value is not None},
        )
        trainer.with_tensorboard_output_config(built)
    if job.checkpoints is not None and job.checkpoints.uri is None:
        # V3's own default, which only this method sets.
        trainer.with_checkpoint_config()
        if job.checkpoints.local_path is not None:
            trainer.checkpoint_config.local_path = job.checkpoints.local_path
    if job.metrics:
        definitions = [
            _built(kind, "with_metric_definitions", {"name": name, "regex": regex})
            for name, regex in job.metrics.items()
        ]
        trainer.with_metric_definitions(definitions)
    return trainer


def _snaked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_snake(key): _snaked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_snaked(entry) for entry in value]
    return value


def _snake(name: str) -> str:
    """Convert ``S3DataType`` to ``s3_data_type``."""
    words = ""
    for number, letter in enumerate(name):
        if letter.isupper() and number and not name[number - 1].isupper():
            words += "_"
        words += letter.lower()
    return words
