"""Options of V2's estimators, one by one: what a user may set beside the framework.

Each is a function from the SDK's names to arguments of the estimator and of ``fit()``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.sdk.capture import ACCOUNT, S3

Names = dict[str, Any]
Arguments = tuple[dict[str, Any], dict[str, Any]]
Option = Callable[[Names], Arguments]

KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234"
IMAGE = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com/mine:1"
MIXED = {
    "epochs": 3,
    "lr": 0.1,
    "tiny": 1e-05,
    "large": 10**20,
    "flag": True,
    "off": False,
    "none": None,
    "list": [1, "a"],
    "map": {"a": {"b": 1}},
    "name": "abc",
    "empty": "",
    "number": "3",
    "quoted": '"x"',
    "unicode": "é ü 漢",
    "brackets": "{{ x }} {% y %} $.z",
}


def _estimator(**arguments: Any) -> Option:
    # Estimators keep what they are given, and change it.
    return lambda names: (deepcopy(arguments), {})


def _made(make: Callable[[Names], dict[str, Any]]) -> Option:
    return lambda names: (make(names), {})


def _inputs(make: Callable[[Names], Any]) -> Option:
    return lambda names: ({}, {"inputs": make(names)})


def _groups(names: Names) -> dict[str, Any]:
    group = names["InstanceGroup"]
    groups = [group("gpu", "ml.g5.12xlarge", 2), group("cpu", "ml.c5.xlarge", 3)]
    return {"instance_groups": groups, "instance_type": None, "instance_count": None}


def _rules(names: Names) -> list[Any]:
    rule, configs, collection = names["Rule"], names["rule_configs"], names["CollectionConfig"]
    own = rule.custom(
        name="mine",
        image_uri=IMAGE,
        instance_type="ml.t3.medium",
        volume_size_in_gb=10,
        rule_to_invoke="Mine",
        source="s3://my-bucket/rules.py",
        other_trials_s3_input_paths=["s3://my-bucket/other"],
        rule_parameters={"threshold": "0.5"},
        collections_to_save=[collection("losses"), collection("all", {"save_interval": "10"})],
    )
    return [rule.sagemaker(configs.loss_not_decreasing()), own]


def _hook(names: Names) -> Any:
    return names["DebuggerHookConfig"](
        s3_output_path="s3://my-bucket/debug",
        container_local_output_path="/opt/ml/output/here",
        hook_parameters={"save_interval": "100"},
        collection_configs=[
            names["CollectionConfig"]("gradients", {"save_interval": "5"}),
            names["CollectionConfig"]("losses"),
        ],
    )


def _profiled(names: Names) -> Any:
    return names["ProfilerConfig"](
        s3_output_path="s3://my-bucket/profile",
        system_monitor_interval_millis=500,
        framework_profile_params=names["FrameworkProfile"](),
    )


def _channel(**arguments: Any) -> Option:
    return _inputs(lambda names: {"data": names["TrainingInput"](S3, **arguments)})


def _several(names: Names) -> Any:
    of = names["TrainingInput"]
    return {
        "train": of(S3, distribution="ShardedByS3Key", content_type="text/csv"),
        "test": "s3://my-bucket/test",
        "lustre": names["FileSystemInput"]("fs-0123456789abcdef0", "FSxLustre", "/fsx/data", "ro"),
        "efs": names["FileSystemInput"]("fs-11111111", "EFS", "/data"),
    }


OPTIONS: dict[str, Option] = {
    "hyperparameters": _estimator(hyperparameters=MIXED),
    "environment": _estimator(environment={"A": "1", "B": "x y"}),
    "no environment": _estimator(environment={}),
    "tags": _estimator(tags=[{"Key": "team", "Value": "ml"}, {"Key": "a", "Value": ""}]),
    "tags as a mapping": _estimator(tags={"team": "ml"}),
    "vpc": _estimator(subnets=["subnet-1", "subnet-2"], security_group_ids=["sg-1"]),
    "spot": _estimator(use_spot_instances=True, max_run=3600, max_wait=7200),
    "runtime": _estimator(max_run=600),
    "checkpoints": _estimator(checkpoint_s3_uri="s3://my-bucket/ckpt"),
    "checkpoints at": _estimator(
        checkpoint_s3_uri="s3://my-bucket/ckpt", checkpoint_local_path="/opt/ml/here"
    ),
    "retries": _estimator(max_retry_attempts=3),
    "warm pool": _estimator(keep_alive_period_in_seconds=600),
    "volume": _estimator(volume_size=200),
    "volume key": _estimator(volume_kms_key=KEY),
    "output": _estimator(output_path="s3://my-bucket/out"),
    "output key": _estimator(output_kms_key=KEY),
    "uncompressed output": _estimator(disable_output_compression=True),
    "pipe": _estimator(input_mode="Pipe"),
    "metrics": _estimator(metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}]),
    "metrics over time": _estimator(enable_sagemaker_metrics=True),
    "no metrics over time": _estimator(enable_sagemaker_metrics=False),
    "encryption": _estimator(encrypt_inter_container_traffic=True),
    "isolation": _estimator(enable_network_isolation=True),
    "log level": _estimator(container_log_level=10),
    "rules": _made(lambda names: {"rules": _rules(names)}),
    "no rules": _estimator(rules=[]),
    "hook": _made(lambda names: {"debugger_hook_config": _hook(names)}),
    "hook on": _estimator(debugger_hook_config=True),
    "hook off": _estimator(debugger_hook_config=False),
    "hook elsewhere": _made(
        lambda names: {
            "debugger_hook_config": names["DebuggerHookConfig"](hook_parameters={"a": "b"})
        }
    ),
    "tensorboard": _made(
        lambda names: {
            "tensorboard_output_config": names["TensorBoardOutputConfig"](
                "s3://my-bucket/tb", "/opt/tb"
            )
        }
    ),
    "profiler": _made(lambda names: {"profiler_config": _profiled(names)}),
    "profiler interval": _made(
        lambda names: {
            "profiler_config": names["ProfilerConfig"](system_monitor_interval_millis=200)
        }
    ),
    "detailed profiler": _made(
        lambda names: {
            "profiler_config": names["ProfilerConfig"](profile_params=names["Profiler"]())
        }
    ),
    "profiler off": _estimator(disable_profiler=True),
    "profiler off by its configuration": _made(
        lambda names: {"profiler_config": names["ProfilerConfig"](disable_profiler=True)}
    ),
    "profiler rule": _made(
        lambda names: {
            "rules": [names["ProfilerRule"].sagemaker(names["rule_configs"].ProfilerReport())]
        }
    ),
    "both rules": _made(
        lambda names: {
            "rules": [
                *_rules(names),
                names["ProfilerRule"].sagemaker(names["rule_configs"].LowGPUUtilization()),
            ]
        }
    ),
    "private registry": _estimator(
        training_repository_access_mode="Vpc",
        training_repository_credentials_provider_arn=f"arn:aws:lambda:us-west-2:{ACCOUNT}:function:f",
    ),
    "infrastructure check": _estimator(enable_infra_check=True),
    "entry point of the container": _estimator(
        container_entry_point=["/bin/sh", "-c"], container_arguments=["echo $A", "{{ x }}"]
    ),
    "remote debugging": _estimator(enable_remote_debug=True),
    "tag chaining": _estimator(enable_session_tag_chaining=True),
    "training plan": _estimator(
        training_plan=f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-plan/mine"
    ),
    "placement": _estimator(
        instance_placement_config={
            "EnableMultipleJobs": True,
            "PlacementSpecifications": [{"UltraServerId": "u-1", "InstanceCount": 2}],
        }
    ),
    "model": _estimator(model_uri="s3://my-bucket/model.tar.gz"),
    "model under a name": _estimator(
        model_uri="s3://my-bucket/model.tar.gz", model_channel_name="pretrained"
    ),
    "dependencies": _made(lambda names: {"dependencies": names["DEPENDENCIES"]}),
    "a script alone": _made(
        lambda names: {"entry_point": f"{names['SRC']}/train.py", "source_dir": None}
    ),
    "a script and dependencies": _made(
        lambda names: {
            "entry_point": f"{names['SRC']}/train.py",
            "source_dir": None,
            "dependencies": names["DEPENDENCIES"],
        }
    ),
    "a script in a folder": _estimator(entry_point="inner/start.py"),
    "code in S3": _estimator(source_dir="s3://my-bucket/code/sourcedir.tar.gz"),
    "groups": _made(_groups),
    "name of jobs": _estimator(base_job_name="mine"),
    "experiment": lambda names: (
        {},
        {
            "experiment_config": {
                "ExperimentName": "e",
                "TrialName": "t",
                "TrialComponentDisplayName": "c",
                "RunName": "r",
            }
        },
    ),
    "no inputs": _inputs(lambda names: None),
    "one uri": _inputs(lambda names: S3),
    "one input": _inputs(lambda names: names["TrainingInput"](S3, input_mode="FastFile")),
    "one file system": _inputs(
        lambda names: names["FileSystemInput"]("fs-11111111", "EFS", "/data", "rw")
    ),
    "several inputs": _inputs(_several),
    "records": _inputs(lambda names: names["RecordSet"](S3, num_records=10, feature_dim=2)),
    "lists of records": _inputs(
        lambda names: [
            names["RecordSet"](S3, num_records=10, feature_dim=2),
            names["FileSystemRecordSet"]("fs-11111111", "EFS", "/d", 10, 2, channel="test"),
        ]
    ),
    "manifest": _channel(s3_data_type="ManifestFile"),
    "augmented manifest": _inputs(
        lambda names: {
            "data": names["TrainingInput"](
                S3,
                s3_data_type="AugmentedManifestFile",
                attribute_names=["source-ref", "label"],
                input_mode="Pipe",
                record_wrapping="RecordIO",
                shuffle_config=names["ShuffleConfig"](7),
            )
        }
    ),
    "compressed": _channel(compression="Gzip", input_mode="Pipe"),
    "fast file": _channel(input_mode="FastFile", distribution="ShardedByS3Key"),
    "data for a group": _channel(instance_groups=["cpu"]),
}

TD = {"torch_distributed": {"enabled": True}}
SMDDP = {"smdistributed": {"dataparallel": {"enabled": True}}}
VERBOSE = {"enabled": True, "custom_mpi_options": "-verbose -x NCCL_DEBUG=VERSION"}
MPI8 = {"mpi": {"enabled": True, "processes_per_host": 8}}
SMP1 = {
    "smdistributed": {
        "modelparallel": {
            "enabled": True,
            "parameters": {"partitions": 2, "microbatches": 4, "ddp": True, "optimize": "memory"},
        }
    },
    **MPI8,
}
SMP2 = {
    "smdistributed": {"modelparallel": {"enabled": True, "parameters": {"hybrid_shard_degree": 8}}},
    **TD,
}
P4D = {"instance_type": "ml.p4d.24xlarge"}
NEURONX = (
    "763104351884.dkr.ecr.us-west-2.amazonaws.com/"
    "pytorch-training-neuronx:2.8.0-neuronx-py311-sdk2.26.0-ubuntu22.04"
)


def on(name: str, **given: Any) -> tuple[str, dict[str, Any]]:
    """A distribution on a framework's estimator."""
    return name, given


DISTRIBUTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "pytorch torchrun": on("pytorch", distribution=TD),
    "pytorch torchrun p5": on("pytorch", distribution=TD, instance_type="ml.p5.48xlarge"),
    "pytorch torchrun trn1": on(
        "pytorch",
        distribution=TD,
        instance_type="ml.trn1.32xlarge",
        image_uri=NEURONX,
        framework_version=None,
        py_version=None,
    ),
    "pytorch mpi": on("pytorch", distribution=MPI8),
    "pytorch mpi as many as devices": on("pytorch", distribution={"mpi": {"enabled": True}}),
    "pytorch mpi with options": on(
        "pytorch",
        distribution={"mpi": {**VERBOSE, "processes_per_host": 4}},
    ),
    "pytorch smddp": on("pytorch", distribution=SMDDP, **P4D),
    "pytorch smddp with options": on(
        "pytorch", distribution={"smdistributed": {"dataparallel": VERBOSE}}, **P4D
    ),
    "pytorch pytorchddp": on("pytorch", distribution={"pytorchddp": {"enabled": True}}, **P4D),
    "pytorch pytorchddp with options": on("pytorch", distribution={"pytorchddp": VERBOSE}, **P4D),
    "pytorch smp 1": on(
        "pytorch", distribution=SMP1, framework_version="1.13.1", py_version="py39", **P4D
    ),
    "pytorch smp 2": on(
        "pytorch",
        distribution=SMP2,
        framework_version="2.4.1",
        py_version="py311",
        instance_type="ml.p5.48xlarge",
    ),
    "pytorch parameter server": on("pytorch", distribution={"parameter_server": {"enabled": True}}),
    "tensorflow mpi": on("tensorflow", distribution=MPI8),
    "tensorflow parameter server": on(
        "tensorflow", distribution={"parameter_server": {"enabled": True}}
    ),
    "tensorflow mirrored": on(
        "tensorflow", distribution={"multi_worker_mirrored_strategy": {"enabled": True}}
    ),
    "tensorflow smddp": on("tensorflow", distribution=SMDDP, **P4D),
    "tensorflow smp 1": on(
        "tensorflow",
        distribution={
            "smdistributed": {
                "modelparallel": {
                    "enabled": True,
                    "parameters": {"partitions": 2, "microbatches": 2, "horovod": True},
                }
            },
            **MPI8,
        },
        framework_version="2.6.3",
        py_version="py38",
        **P4D,
    ),
    "tensorflow model_dir": on("tensorflow", model_dir="s3://my-bucket/model"),
    "tensorflow no model_dir": on("tensorflow", model_dir=False),
    "huggingface torchrun": on("huggingface", distribution=TD),
    "huggingface torchrun p5": on("huggingface", distribution=TD, instance_type="ml.p5.48xlarge"),
    "huggingface pytorchddp": on(
        "huggingface", distribution={"pytorchddp": {"enabled": True}}, **P4D
    ),
    "huggingface smddp": on(
        "huggingface",
        distribution=SMDDP,
        transformers_version="4.26.0",
        pytorch_version="1.13.1",
        py_version="py39",
        **P4D,
    ),
    "huggingface smp 1": on(
        "huggingface",
        distribution=SMP1,
        transformers_version="4.26.0",
        pytorch_version="1.13.1",
        py_version="py39",
        **P4D,
    ),
    "huggingface mpi": on("huggingface", distribution=MPI8),
    "huggingface tensorflow": on(
        "huggingface",
        transformers_version="4.17.0",
        tensorflow_version="2.6.3",
        pytorch_version=None,
        py_version="py38",
    ),
    "huggingface image": on(
        "huggingface",
        image_uri=IMAGE,
        transformers_version=None,
        pytorch_version=None,
        distribution=TD,
    ),
    "mxnet mpi": on("mxnet", distribution=MPI8),
    "mxnet mpi as many as devices": on("mxnet", distribution={"mpi": {"enabled": True}}),
    "mxnet parameter server": on("mxnet", distribution={"parameter_server": {"enabled": True}}),
    "chainer mpi": on(
        "chainer",
        use_mpi=True,
        num_processes=4,
        process_slots_per_host=2,
        additional_mpi_options="-x A=1",
    ),
    "pytorch on a CPU": on("pytorch", instance_type="ml.m5.xlarge", instance_count=1),
    "pytorch short version": on("pytorch", framework_version="2.8", py_version="py312"),
    "pytorch image": on(
        "pytorch", image_uri=IMAGE, framework_version=None, py_version=None, distribution=TD
    ),
}
"""Every strategy on every framework whose estimator takes it."""
