"""The attributes of V3's trainer: those that are converted, ignored and refused."""

from __future__ import annotations

from typing import Final

CONVERTED: Final = frozenset(
    [
        *("training_mode", "source_code", "distributed", "compute", "networking"),
        *("stopping_condition", "training_image", "training_image_config", "algorithm_name"),
        *("output_data_config", "input_data_config", "checkpoint_config", "training_input_mode"),
        *("environment", "hyperparameters", "tags", "model_package_config"),
    ]
)
SILENT: Final = frozenset(
    ["sagemaker_session", "role", "base_job_name", "local_container_root", "config_mgr"]
)
REFUSED: Final = {
    "input_s3_key_prefix": "code is uploaded to the pipeline's workspace; set it to None",
    "_is_nova_recipe": "there are no training recipes here",
    "_is_llmft_recipe": "there are no training recipes here",
    "_temp_recipe_train_dir": "there are no training recipes here",
    "_jumpstart_config": "there is no JumpStart here; give image, code and data themselves",
}
OF_FIELDS: Final = {
    "cluster": "compute",
    "compute.instance_count": "compute.instance_count",
    "compute.keep_alive_s": "compute.keep_alive_period_in_seconds",
    "compute.max_pending_s": "stopping_condition.max_pending_time_in_seconds",
    "compute.training_plan": "compute.training_plan_arn",
    "compute.volume_gib": "compute.volume_size_in_gb",
    "compute.volume_kms_key": "compute.volume_kms_key_id",
    "input_mode": "training_input_mode",
    "max_retries": "_retry_strategy.maximum_retry_attempts",
    "max_runtime_s": "stopping_condition.max_runtime_in_seconds",
    "output_data_config.compression": "output_data_config.compression_type",
    "output_data_config.kms_key": "output_data_config.kms_key_id",
    "output_data_config.uri": "output_data_config.s3_output_path",
}
"""The trainer's attributes, by the fields that they become."""
