"""The attributes of V2's estimators: those that are converted, and those that are ignored.

Read in the SageMaker Python SDK 2.257.7, November 2026. An attribute in neither list that has a
value is refused, so that no option of a newer SDK is silently dropped.
"""

from __future__ import annotations

from typing import Any, Final

from orchestration.sagemaker_sdk.findings import Findings, refuse_variables
from orchestration.sagemaker_sdk.subclasses import (
    UNKNOWN,
    described,
    is_set,
    own_attributes,
    refuse_replaced,
)

CONVERTED: Final = frozenset(
    [
        *("instance_count", "instance_type", "instance_groups", "keep_alive_period_in_seconds"),
        *("volume_size", "volume_kms_key", "training_plan", "instance_placement_config"),
        *("max_run", "max_wait", "use_spot_instances", "max_retry_attempts"),
        *("checkpoint_s3_uri", "checkpoint_local_path", "input_mode", "model_uri"),
        *("model_channel_name", "output_path", "output_kms_key", "disable_output_compression"),
        *("role", "tags", "subnets", "security_group_ids", "environment", "metric_definitions"),
        *("enable_sagemaker_metrics", "encrypt_inter_container_traffic"),
        *("_enable_network_isolation", "rules", "debugger_hook_config", "profiler_config"),
        *("disable_profiler", "tensorboard_output_config", "image_uri", "algorithm_arn"),
        *("training_repository_access_mode", "training_repository_credentials_provider_arn"),
        *("enable_infra_check", "container_entry_point", "container_arguments"),
        *("_enable_remote_debug", "_enable_session_tag_chaining", "_hyperparameters"),
        *("source_dir", "entry_point", "dependencies", "container_log_level", "distribution"),
        *("framework_version", "py_version", "pytorch_version", "tensorflow_version"),
        *("base_framework_name", "base_framework_version", "model_dir", "compiler_config"),
        *("use_mpi", "num_processes", "process_slots_per_host", "additional_mpi_options"),
        *("toolkit", "toolkit_version", "framework"),
    ]
)
REFUSED: Final = {
    "git_config": "the code would be cloned at conversion; clone it, and give source_dir",
    "code_location": "code is uploaded to the pipeline's workspace; set it to None, and set the "
    "pipeline's workspace to that bucket",
    "is_nova_or_eval_recipe": "there are no training recipes here",
    "is_llmft_recipe": "there are no training recipes here",
    "is_nova_job": "there are no training recipes here",
    "training_recipe_file": "there are no training recipes here",
}
OF_FIELDS: Final = {
    "algorithm": "algorithm_arn",
    "arguments": "container_arguments",
    "channels": "inputs",
    "checkpoints": "checkpoint_s3_uri",
    "checkpoints.local_path": "checkpoint_local_path",
    "checkpoints.uri": "checkpoint_s3_uri",
    "cluster": "instance_type",
    "cluster.groups": "instance_groups",
    "cluster.instance_count": "instance_count",
    "cluster.instance_type": "instance_type",
    "cluster.keep_alive_s": "keep_alive_period_in_seconds",
    "cluster.training_plan": "training_plan",
    "cluster.volume_gib": "volume_size",
    "cluster.volume_kms_key": "volume_kms_key",
    "debugger": "debugger_hook_config",
    "debugger.rules": "rules",
    "debugger.uri": "debugger_hook_config.s3_output_path",
    "entrypoint": "container_entry_point",
    "experiment": "experiment_config",
    "framework": "framework_version",
    "image": "image_uri",
    "log_level": "container_log_level",
    "max_retries": "max_retry_attempts",
    "max_runtime_s": "max_run",
    "metrics": "metric_definitions",
    "metrics_time_series": "enable_sagemaker_metrics",
    "output": "output_path",
    "output.kms_key": "output_kms_key",
    "output.uri": "output_path",
    "profiler": "profiler_config",
    "profiler.rules": "rules",
    "profiler.uri": "profiler_config.s3_output_path",
    "source": "source_dir",
    "source.entry_point": "entry_point",
    "spot": "use_spot_instances",
    "spot.max_wait_s": "max_wait",
    "strategy": "distribution",
    "tensorboard": "tensorboard_output_config",
    "tensorboard.local_path": "tensorboard_output_config.container_local_output_path",
    "tensorboard.uri": "tensorboard_output_config.s3_output_path",
    "vpc": "subnets",
    "vpc.security_groups": "security_group_ids",
    "vpc.subnets": "subnets",
}
"""The estimator's attributes, by the fields that they become."""
LOCAL_MODE: Final = "the SDK's local mode (orchestrate run runs a pipeline on this machine)"
HARMLESS: Final = frozenset(
    [
        *("logs", "latest_job_debugger_artifacts_path", "rule_job_summary"),
        *("latest_job_tensorboard_artifacts_path", "latest_job_profiler_artifacts_path"),
        *("attach", "deploy", "register", "create_model", "compile_model", "transformer"),
        *("model_data", "delete_endpoint", "_abc_impl"),
        "_prepare_init_params_from_job_description",
    ]
)
"""Names of the SDK's classes that a user's class may define: they shape no request of ``fit()``.

``fit`` itself is none of them: one that adds channels or an environment would be lost silently.
"""
SILENT: Final = frozenset(
    [
        # The session, and what fit() leaves behind.
        *("sagemaker_session", "latest_training_job", "jobs", "uploaded_code", "code_uri"),
        *("_current_job_name", "_compiled_models", "debugger_rule_configs", "debugger_rules"),
        *("profiler_rule_configs", "profiler_rules", "collection_configs", "tensorboard_app"),
        *("_is_output_path_set_from_default_bucket_and_prefix", "deploy_instance_type"),
        # A fixed name, and the prefix of job names.
        *("code_channel_name", "base_job_name"),
        # The algorithm's own description, which the estimator fetched.
        *("algorithm_spec", "hyperparameter_definitions"),
    ]
)


def checked(estimator: Any, findings: Findings) -> bool:
    """Check that an object is an estimator of V2, and report attributes without counterpart.

    Returns whether its other attributes can be read.
    """
    kinds = [kind.__name__ for kind in type(estimator).__mro__]
    if "EstimatorBase" not in kinds:
        got = described(estimator)
        findings.add("", f"is {got}, not an estimator of the SageMaker Python SDK's V2")
        return False
    if "AmazonAlgorithmEstimatorBase" in kinds:
        findings.add(
            "",
            f"{kinds[0]} takes its hyperparameters from the records that fit() gets; use "
            "Estimator(image_uri=image_uris.retrieve(…)) with hyperparameters for the algorithm",
        )
        return False
    skipped = refuse_replaced(estimator, HARMLESS, findings) | own_attributes(type(estimator))
    for name, value in vars(estimator).items():
        if name in skipped:
            continue
        if name in REFUSED:
            if value:
                findings.add(name, f"has no counterpart: {REFUSED[name]}")
        elif name not in CONVERTED | SILENT and is_set(value):
            findings.add(name, f"is {value!r:.80}, and {UNKNOWN}")
    refuse_variables(findings, {k: v for k, v in vars(estimator).items() if k in CONVERTED})
    if getattr(estimator.sagemaker_session, "local_mode", False) is True:
        findings.add("sagemaker_session", f"is {LOCAL_MODE}; give a session of AWS")
    return True


def fitted(estimator: Any) -> bool:
    """Return whether ``fit()`` has filled in the estimator's defaults."""
    return estimator.latest_training_job is not None or estimator.uploaded_code is not None


def given_place(estimator: Any, place: Any) -> str | None:
    """Return an S3 location that the user set; not the output path, which ``fit()`` fills in."""
    filled = getattr(estimator, "_is_output_path_set_from_default_bucket_and_prefix", False)
    location: str | None = None if filled and place == estimator.output_path else place
    return location


def output_path(estimator: Any) -> str | None:
    """Return the output path that the user set; not the default that ``fit()`` filled in."""
    return given_place(estimator, estimator.output_path)
