"""V3's ``ModelTrainer`` against the training jobs made of it, and of training jobs.

Needs an environment with V3 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestration import MPI, Pipeline, PipelineError, SMPv2, Source, TorchDistributed, TrainingJob
from orchestration.sagemaker_sdk import (
    DIFFERENCES,
    from_model_trainer,
    settings,
    to_model_trainer,
)
from orchestration.stages.packing import archive
from orchestration.stages.training import ModelOutput
from tests.sdk import v3
from tests.sdk.capture import ACCOUNT, REGION, ROLE, S3, Recorder, generation, unpacked
from tests.sdk.comparing import CONTEXT, RUN, RUN_PLACE, WORKSPACE, request

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 3:
    pytest.skip("needs the SageMaker Python SDK, V3 (make test-sdk)", allow_module_level=True)

IMAGE = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com/mine:1"
PYTORCH = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
TENSORFLOW = "763104351884.dkr.ecr.us-west-2.amazonaws.com/tensorflow-training:2.19.0-gpu-py312"
KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234"
compared = itertools.count()


@dataclass
class Sdk:
    """The SDK with one session, which records."""

    names: dict[str, Any]
    recorder: Recorder
    session: Any
    code: Path

    def trainer(self, **given: Any) -> Any:
        where = {"role": ROLE, "sagemaker_session": self.session, "base_job_name": "mine"}
        machines = {"instance_type": "ml.g5.12xlarge", "instance_count": 2}
        compute = self.names["Compute"](**machines)
        return self.names["ModelTrainer"](
            **{**where, "training_image": IMAGE, "compute": compute, **given}
        )

    def sent(self, trainer: Any, inputs: Any = None) -> dict[str, Any]:
        self.recorder.requests.clear()
        self.recorder.uploads.clear()
        trainer.train(input_data_config=inputs, wait=False)
        return self.recorder.request


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Sdk:
    code = tmp_path_factory.mktemp("code")
    (code / "train.py").write_text("print('training')\n")
    (code / "start.sh").write_text("echo training\n")
    recorder = Recorder()
    return Sdk(v3.names(), recorder, v3.session(recorder), code)


def _different(job: TrainingJob, theirs: dict[str, Any]) -> dict[str, Any]:
    """What is left of both requests, names, role and tags aside."""
    ours = request(job)
    theirs = json.loads(json.dumps(theirs))
    assert theirs.pop("RoleArn") == ours.pop("RoleArn")
    assert ours.pop("TrainingJobName") == f"p-train-{RUN}"
    assert theirs.pop("TrainingJobName").startswith("mine-")
    ours["Tags"] = [tag for tag in ours["Tags"] if not tag["Key"].startswith("orchestration:")]
    if theirs.get("CheckpointConfig", {}).get("S3Uri", "").endswith("/checkpoints"):
        assert ours["CheckpointConfig"].pop("S3Uri") == f"{RUN_PLACE}/checkpoints"
        del theirs["CheckpointConfig"]["S3Uri"]
    for channel in theirs.get("InputDataConfig", ()):
        if "S3DataSource" in channel["DataSource"]:
            channel["DataSource"]["S3DataSource"].setdefault(
                "S3DataDistributionType", "FullyReplicated"
            )
    return {
        field: (theirs.get(field), ours.get(field))
        for field in {**theirs, **ours}
        if (theirs.get(field) or None) != (ours.get(field) or None)
    }


Case = Callable[[dict[str, Any]], dict[str, Any]]
MIXED = {"epochs": 3, "lr": 0.1, "name": "abc", "flag": True, "list": [1, "a"], "é": "ü"}
OPTIONS: dict[str, Case] = {
    "nothing": lambda n: {},
    "hyperparameters": lambda n: {"hyperparameters": dict(MIXED)},
    "environment": lambda n: {"environment": {"A": "1"}},
    "tags": lambda n: {"tags": [n["Tag"](key="team", value="ml")]},
    "network": lambda n: {
        "networking": n["Networking"](
            subnets=["subnet-1"],
            security_group_ids=["sg-1"],
            enable_network_isolation=True,
            enable_inter_container_traffic_encryption=True,
        )
    },
    "isolation alone": lambda n: {"networking": n["Networking"](enable_network_isolation=True)},
    "spot": lambda n: {
        "compute": n["Compute"](
            instance_type="ml.g5.xlarge", instance_count=1, enable_managed_spot_training=True
        ),
        "stopping_condition": n["StoppingCondition"](
            max_runtime_in_seconds=600, max_wait_time_in_seconds=1200
        ),
    },
    "machines": lambda n: {
        "compute": n["Compute"](
            instance_type="ml.m5.xlarge",
            instance_count=3,
            volume_size_in_gb=100,
            volume_kms_key_id=KEY,
            keep_alive_period_in_seconds=60,
            training_plan_arn=f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-plan/mine",
        )
    },
    "groups": lambda n: {
        "compute": n["Compute"](
            instance_groups=[
                n["InstanceGroup"](
                    instance_group_name="gpu", instance_type="ml.g5.xlarge", instance_count=2
                ),
                n["InstanceGroup"](
                    instance_group_name="cpu", instance_type="ml.m5.xlarge", instance_count=1
                ),
            ]
        )
    },
    "preferences": lambda n: {
        "compute": n["Compute"](
            instance_count=2,
            instance_preferences=[
                n["InstancePreference"](instance_type="ml.p5.48xlarge"),
                n["InstancePreference"](instance_type="ml.p4d.24xlarge"),
            ],
        ),
        "stopping_condition": n["StoppingCondition"](
            max_runtime_in_seconds=600, max_pending_time_in_seconds=7200
        ),
    },
    "preferences with counts": lambda n: {
        "compute": n["Compute"](
            instance_preferences=[
                n["InstancePreference"](instance_type="ml.p5.48xlarge", instance_count=2),
                n["InstancePreference"](instance_type="ml.p4d.24xlarge", instance_count=4),
            ],
        ),
    },
    "no machines said": lambda n: {"compute": None},
    "output": lambda n: {
        "output_data_config": n["OutputDataConfig"](
            s3_output_path="s3://my-bucket/out", kms_key_id=KEY, compression_type="NONE"
        )
    },
    "checkpoints": lambda n: {
        "checkpoint_config": n["CheckpointConfig"](s3_uri="s3://my-bucket/ckpt", local_path="/here")
    },
    "checkpoints by default": lambda n: {"checkpoint_config": n["CheckpointConfig"]()},
    "pipe": lambda n: {"training_input_mode": "Pipe"},
    "private registry": lambda n: {
        "training_image_config": n["TrainingImageConfig"](
            training_repository_access_mode="Vpc",
            training_repository_auth_config=n["TrainingRepositoryAuthConfig"](
                training_repository_credentials_provider_arn=f"arn:aws:lambda:us-west-2:{ACCOUNT}:function:f"
            ),
        )
    },
    "algorithm": lambda n: {
        "training_image": None,
        "algorithm_name": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:algorithm/mine",
    },
    "placement": lambda n: {
        "compute": n["Compute"](
            instance_type="ml.p6e-gb200.36xlarge",
            instance_count=2,
            instance_placement_config=n["InstancePlacementConfig"](
                enable_multiple_jobs=True,
                placement_specifications=[
                    n["PlacementSpecification"](ultra_server_id="u-1", instance_count=2)
                ],
            ),
        )
    },
    "own inputs": lambda n: {
        "input_data_config": [n["InputData"](channel_name="own", data_source="s3://my-bucket/own")]
    },
}
INPUTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "none": lambda n: None,
    "uri": lambda n: [n["InputData"](channel_name="training", data_source=S3)],
    "overriding": lambda n: [n["InputData"](channel_name="own", data_source=S3)],
    "with a type": lambda n: [
        n["InputData"](channel_name="training", data_source=S3, content_type="text/csv")
    ],
    "a source that says little": lambda n: [
        n["InputData"](
            channel_name="training",
            data_source=n["S3DataSource"](s3_data_type="S3Prefix", s3_uri=S3),
        ),
    ],
    "sources": lambda n: [
        n["InputData"](
            channel_name="sharded",
            data_source=n["S3DataSource"](
                s3_data_type="ManifestFile",
                s3_uri="s3://my-bucket/manifest",
                s3_data_distribution_type="ShardedByS3Key",
            ),
        ),
        n["InputData"](
            channel_name="lustre",
            data_source=n["FileSystemDataSource"](
                file_system_id="fs-0123456789abcdef0",
                file_system_access_mode="ro",
                file_system_type="FSxLustre",
                directory_path="/fsx/data",
            ),
        ),
        n["Channel"](
            channel_name="pipe",
            data_source=n["DataSource"](
                s3_data_source=n["S3DataSource"](
                    s3_data_type="AugmentedManifestFile",
                    s3_uri="s3://my-bucket/augmented",
                    s3_data_distribution_type="FullyReplicated",
                    attribute_names=["a", "b"],
                )
            ),
            input_mode="Pipe",
            record_wrapper_type="RecordIO",
            compression_type="Gzip",
            shuffle_config=n["ShuffleConfig"](seed=7),
        ),
    ],
}


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("option", OPTIONS)
def test_without_source_code_the_request_is_the_same(sdk: Sdk, option: str, inputs: str) -> None:
    trainer = sdk.trainer(**OPTIONS[option](sdk.names))
    given = INPUTS[inputs](sdk.names)
    job = from_model_trainer(trainer, given)
    next(compared)
    assert _different(job, sdk.sent(trainer, given)) == {}


def test_what_a_trainer_is_given_later_is_sent_too(sdk: Sdk) -> None:
    n = sdk.names
    trainer = (
        sdk.trainer()
        .with_tensorboard_output_config(n["TensorBoardOutputConfig"](s3_output_path="s3://b/tb"))
        .with_retry_strategy(n["RetryStrategy"](maximum_retry_attempts=3))
        .with_infra_check_config(n["InfraCheckConfig"](enable_infra_check=True))
        .with_session_chaining_config(n["SessionChainingConfig"](enable_session_tag_chaining=True))
        .with_remote_debug_config(n["RemoteDebugConfig"](enable_remote_debug=True))
        .with_metric_definitions([n["MetricDefinition"](name="loss", regex="loss=(.*)")])
    )
    next(compared)
    job = from_model_trainer(trainer)
    sent = sdk.sent(trainer)
    assert _different(job, sent) == {}
    back = to_model_trainer(
        job, n["ModelTrainer"], role=ROLE, session=sdk.session, base_job_name="mine"
    )
    assert _different(job, sdk.sent(back)) == {}


LAUNCHED: dict[str, tuple[str, Case, Any]] = {
    "script": ("train.py", lambda n: {}, None),
    "shell script": ("start.sh", lambda n: {}, None),
    "torchrun": ("train.py", lambda n: {"distributed": n["Torchrun"]()}, TorchDistributed()),
    "torchrun with processes": (
        "train.py",
        lambda n: {"distributed": n["Torchrun"](process_count_per_node=2)},
        TorchDistributed(processes_per_host=2),
    ),
    "mpi": (
        "train.py",
        lambda n: {
            "distributed": n["MPI"](
                process_count_per_node=4, mpi_additional_options=["-x", "NCCL_DEBUG=INFO"]
            )
        },
        MPI(processes_per_host=4, custom_mpi_options="-x NCCL_DEBUG=INFO"),
    ),
    "smp": (
        "train.py",
        lambda n: {"distributed": n["Torchrun"](smp=n["SMP"](hybrid_shard_degree=4))},
        SMPv2(hybrid_shard_degree=4),
    ),
}


@pytest.mark.parametrize("image", [PYTORCH, TENSORFLOW])
@pytest.mark.parametrize("name", LAUNCHED)
def test_source_code_is_started_by_the_toolkit(sdk: Sdk, name: str, image: str) -> None:
    entry, given, strategy = LAUNCHED[name]
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script=entry)
    trainer = sdk.trainer(
        training_image=image,
        source_code=source,
        hyperparameters=dict(MIXED),
        **given(sdk.names),
    )
    job = from_model_trainer(trainer, [sdk.names["InputData"](channel_name="t", data_source=S3)])
    sent = sdk.sent(trainer, [sdk.names["InputData"](channel_name="t", data_source=S3)])
    next(compared)
    left = _different(job, sent)
    # All that differs is how the code gets there and is started.
    assert left.keys() == {"AlgorithmSpecification", "HyperParameters", "InputDataConfig"}
    assert _without_launcher(left["AlgorithmSpecification"][0]) == left["AlgorithmSpecification"][1]
    own = [c for c in left["InputDataConfig"][0] if c["ChannelName"] not in ("code", "sm_drivers")]
    assert own == left["InputDataConfig"][1]
    assert _same_values(*left["HyperParameters"])
    assert job.strategy == (strategy or job.strategy)
    assert (strategy is None) == (job.strategy.kind == "none")
    assert _code(sent, sdk) == unpacked(archive(Path(str(job.source and job.source.directory))))


def _without_launcher(algorithm: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in algorithm.items() if not k.startswith("Container")}


def _same_values(theirs: dict[str, str], ours: dict[str, str]) -> bool:
    """Whether the toolkit decodes what V3's drivers do."""
    decoded = {name: _decoded(text) for name, text in ours.items()}
    return all(decoded[name] == _decoded(text) for name, text in theirs.items())


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _code(sent: dict[str, Any], sdk: Sdk) -> dict[str, bytes]:
    [place] = [
        channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in sent["InputDataConfig"]
        if channel["ChannelName"] == "code"
    ]
    return {
        uri.removeprefix(f"{place}/"): content
        for uri, content in sdk.recorder.uploads.items()
        if uri.startswith(f"{place}/")
    }


def _refused(convert: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(PipelineError) as error:
        convert()
    return {problem.path: problem.message for problem in error.value.problems}


def test_what_has_no_counterpart_is_named_all_at_once(sdk: Sdk) -> None:
    n = sdk.names
    (sdk.code / "more.txt").write_text("numpy\n")
    trainer = sdk.trainer(
        input_s3_key_prefix="mine/",
        source_code=n["SourceCode"](
            source_dir=str(sdk.code), command="python train.py", requirements="more.txt"
        ),
        stopping_condition=n["StoppingCondition"](
            max_runtime_in_seconds=60, max_wait_time_in_seconds=600
        ),
    )
    (sdk.code / "more.txt").unlink()
    assert _refused(lambda: from_model_trainer(trainer)).keys() == {
        "model_trainer.input_s3_key_prefix",
        "model_trainer.training_image",
        "model_trainer.source_code.command",
        "model_trainer.source_code.requirements",
        "model_trainer.stopping_condition.max_wait_time_in_seconds",
    }


def test_an_image_of_ones_own_may_have_the_toolkit(sdk: Sdk) -> None:
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script="train.py")
    trainer = sdk.trainer(source_code=source)
    assert (
        "toolkit=True"
        in _refused(lambda: from_model_trainer(trainer))["model_trainer.training_image"]
    )
    job = from_model_trainer(trainer, toolkit=True)
    assert job.image == IMAGE
    assert job.framework is None


def test_what_ignore_patterns_keep_out_does_not_travel(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / ".env").write_text("SECRET=1\n")
    source = sdk.names["SourceCode"](source_dir=str(tmp_path), entry_script="train.py")
    job = from_model_trainer(sdk.trainer(training_image=PYTORCH, source_code=source))
    assert job.source is not None
    assert unpacked(archive(Path(str(job.source.directory)))).keys() == {"train.py"}


def test_a_driver_of_ones_own_has_no_counterpart(sdk: Sdk) -> None:
    own = {"driver_dir": property(lambda self: "."), "driver_script": property(lambda self: "x.py")}
    mine = type("Mine", (sdk.names["DistributedConfig"],), own)
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script="train.py")
    trainer = sdk.trainer(training_image=PYTORCH, source_code=source, distributed=mine())
    assert "Mine" in _refused(lambda: from_model_trainer(trainer))["model_trainer.distributed"]


def test_defaults_of_the_sdks_configuration_are_named(sdk: Sdk) -> None:
    session = v3.session(Recorder(), TrainingJob={"Environment": {"A": "1"}})
    trainer = sdk.trainer(sagemaker_session=session)
    path = "model_trainer.sagemaker_session.sagemaker_config.SageMaker.TrainingJob.Environment"
    assert _refused(lambda: from_model_trainer(trainer)).keys() == {path}


def test_a_subclass_that_may_change_the_request_is_refused(sdk: Sdk) -> None:
    kind = sdk.names["ModelTrainer"]
    own = {"__annotations__": {"team": str}, "team": "ours", "__module__": __name__}
    plain = type("Plain", (kind,), own)
    given = {"role": ROLE, "sagemaker_session": sdk.session, "training_image": IMAGE}
    assert from_model_trainer(plain(**given)) == from_model_trainer(kind(**given))
    mine = type("Mine", (kind,), {**own, "train": lambda self, *inputs: None})
    refused = _refused(lambda: from_model_trainer(mine(**given)))
    assert "Mine.train() replaces the SDK's own" in refused["model_trainer"]


@pytest.mark.parametrize("inputs", [{"train": S3}, S3, [S3]])
def test_inputs_of_a_wrong_shape_are_named(sdk: Sdk, inputs: Any) -> None:
    refused = _refused(lambda: from_model_trainer(sdk.trainer(), inputs))
    assert "give a list of InputData" in refused["model_trainer.input_data_config"]


def test_two_inputs_of_one_name_are_refused(sdk: Sdk) -> None:
    inputs = [sdk.names["InputData"](channel_name="t", data_source=S3)] * 2
    refused = _refused(lambda: from_model_trainer(sdk.trainer(), inputs))
    assert list(refused) == ["model_trainer.input_data_config['t']"]


def test_numbers_of_numpy_are_the_text_that_v3_makes_of_them(sdk: Sdk) -> None:
    numpy = pytest.importorskip("numpy")
    given = {"a": numpy.int64(3), "b": numpy.float32(0.1), "c": numpy.bool_(True)}
    trainer = sdk.trainer(hyperparameters=given)
    assert _different(from_model_trainer(trainer), sdk.sent(trainer)) == {}
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script="train.py")
    scripted = sdk.trainer(training_image=PYTORCH, source_code=source, hyperparameters=given)
    assert from_model_trainer(scripted).hyperparameters == {"a": 3, "b": 0.1, "c": True}
    array = sdk.trainer(hyperparameters={"a": numpy.arange(3)})
    assert "model_trainer.hyperparameters.a" in _refused(lambda: from_model_trainer(array))


def test_something_else_is_no_trainer(sdk: Sdk) -> None:
    assert _refused(lambda: from_model_trainer(object())).keys() == {"model_trainer"}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("inputs", ["uri", "sources"])
def test_there_and_back_again(sdk: Sdk, option: str, inputs: str) -> None:
    first = sdk.trainer(**OPTIONS[option](sdk.names))
    given = INPUTS[inputs](sdk.names)
    job = from_model_trainer(first, given)
    again = to_model_trainer(
        job,
        sdk.names["ModelTrainer"],
        role=ROLE,
        session=sdk.session,
        base_job_name="mine",
    )
    next(compared)
    theirs, back = sdk.sent(first, given), sdk.sent(again)
    for sent in (theirs, back):
        del sent["TrainingJobName"]
        if "CheckpointConfig" in sent:
            uri = sent["CheckpointConfig"]["S3Uri"].split("/")
            sent["CheckpointConfig"]["S3Uri"] = [part for part in uri if "mine-" not in part]
    assert back == theirs


@pytest.mark.parametrize("name", ["script", "torchrun", "torchrun with processes", "smp"])
def test_source_code_there_and_back_again(sdk: Sdk, name: str) -> None:
    entry, given, _ = LAUNCHED[name]
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script=entry)
    first = sdk.trainer(training_image=PYTORCH, source_code=source, **given(sdk.names))
    again = to_model_trainer(
        from_model_trainer(first),
        sdk.names["ModelTrainer"],
        role=ROLE,
        session=sdk.session,
        base_job_name="mine",
    )
    next(compared)
    assert again.source_code == first.source_code
    assert type(again.distributed) is type(first.distributed)
    assert again.distributed == first.distributed


def test_a_framework_becomes_its_image(sdk: Sdk) -> None:
    job = TrainingJob.model_validate(
        {
            "name": "train",
            "framework": {"name": "pytorch", "version": "2.8.0"},
            "source": Source.at(sdk.code, "train.py"),
            "cluster": {"instance_type": "ml.g5.12xlarge", "instance_count": 2},
            "strategy": {"kind": "torch_distributed"},
            "metrics": {"loss": "loss=(.*)"},
            "max_retries": 2,
            "tensorboard": {"uri": "s3://b/tb"},
        }
    )
    trainer = to_model_trainer(
        job, sdk.names["ModelTrainer"], role=ROLE, session=sdk.session, base_job_name="mine"
    )
    sent = sdk.sent(trainer)
    assert sent["AlgorithmSpecification"]["TrainingImage"] == PYTORCH
    assert sent["AlgorithmSpecification"]["MetricDefinitions"] == [
        {"Name": "loss", "Regex": "loss=(.*)"}
    ]
    assert sent["RetryStrategy"] == {"MaximumRetryAttempts": 2}
    assert sent["TensorBoardOutputConfig"]["S3OutputPath"] == "s3://b/tb"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"strategy": {"kind": "smddp"}}, "strategy"),
        ({"strategy": {"kind": "mpi"}}, "strategy"),
        ({"strategy": {"kind": "horovod"}}, "strategy"),
        ({"strategy": {"kind": "pytorchddp"}}, "strategy"),
        ({"strategy": {"kind": "smp_v1"}}, "strategy"),
        ({"strategy": {"kind": "parameter_server"}}, "strategy"),
        ({"strategy": {"kind": "multi_worker_mirrored"}}, "strategy"),
        ({"debugger": {"uri": "s3://b/x"}}, "debugger"),
        ({"profiler": {"enabled": False}}, "profiler"),
        ({"experiment": {"name": "e"}}, "experiment"),
        ({"entrypoint": ["/bin/sh"]}, "entrypoint"),
        ({"arguments": ["a"]}, "arguments"),
        (
            {
                "extra_request": {
                    "AlgorithmSpecification": {"EnableSageMakerMetricsTimeSeries": False}
                }
            },
            "extra_request.AlgorithmSpecification.EnableSageMakerMetricsTimeSeries",
        ),
        ({"log_level": 10}, "log_level"),
        ({"channels": {"data": {"ref": "staging.location"}}}, "channels.data.uri"),
        (
            {"source": {"directory": "src", "entry_point": "train.py", "runtime": True}},
            "source.runtime",
        ),
        (
            {"source": {"directory": "src", "entry_point": "train.py", "dependencies": ["lib"]}},
            "source.dependencies",
        ),
    ],
)
def test_a_job_with_more_than_v3_knows_is_refused(sdk: Sdk, given: Any, path: str) -> None:
    plain = {
        "name": "train",
        "image": IMAGE,
        "cluster": {"instance_type": "ml.p4d.24xlarge", "instance_count": 2},
    }
    job = TrainingJob.model_validate({**plain, **given})
    refused = _refused(
        lambda: to_model_trainer(job, sdk.names["ModelTrainer"], role=ROLE, session=sdk.session)
    )
    assert refused.keys() == {f"training_job.{path}"}


@pytest.mark.filterwarnings("default:V3 has no:UserWarning")
@pytest.mark.parametrize(
    ("instance_type", "profiled"), [("ml.g5.12xlarge", True), ("ml.trn1.32xlarge", False)]
)
def test_defaults_of_v2s_estimators_are_left_out_and_named(
    sdk: Sdk, instance_type: str, profiled: bool
) -> None:
    """On Trainium they turn the profiler off."""
    job = TrainingJob.model_validate(
        {
            "name": "train",
            "image": IMAGE,
            "output": {"uri": "s3://b/out"},
            "cluster": {"instance_type": instance_type, "instance_count": 2},
            "debugger": {"uri": "s3://b/out"},
            "profiler": {"enabled": profiled},
            "metrics_time_series": True,
        }
    )
    with pytest.warns(UserWarning, match="V3 has no debugger, metrics_time_series, profiler"):
        trainer = to_model_trainer(
            job, sdk.names["ModelTrainer"], role=ROLE, session=sdk.session, base_job_name="mine"
        )
    sent = sdk.sent(trainer)
    assert not {"DebugHookConfig", "ProfilerConfig"} & sent.keys()
    assert sent["OutputDataConfig"]["S3OutputPath"] == "s3://b/out"


def test_output_is_compressed_or_not_also_where_it_has_no_place(sdk: Sdk) -> None:
    job = from_model_trainer(sdk.trainer())
    bare = job.model_copy(update={"output": ModelOutput(compression="NONE")})
    again = to_model_trainer(bare, sdk.names["ModelTrainer"], role=ROLE, session=sdk.session)
    sent = sdk.sent(again)["OutputDataConfig"]
    assert sent["CompressionType"] == "NONE"
    assert sent["S3OutputPath"].startswith("s3://sagemaker-")


def test_hyperparameters_of_any_form_are_led_back(sdk: Sdk) -> None:
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script="train.py")
    given = {"list": [1, "a"], "none": None, "map": {"a": {"b": 1}}, "lr": 0.1}
    first = sdk.trainer(training_image=PYTORCH, source_code=source, hyperparameters=given)
    again = to_model_trainer(
        from_model_trainer(first), sdk.names["ModelTrainer"], role=ROLE, session=sdk.session
    )
    assert again.hyperparameters == given


def test_what_the_toolkit_sets_is_no_hyperparameter_of_ones_own(sdk: Sdk) -> None:
    source = sdk.names["SourceCode"](source_dir=str(sdk.code), entry_script="train.py")
    trainer = sdk.trainer(
        training_image=PYTORCH, source_code=source, hyperparameters={"sagemaker_program": "x.py"}
    )
    path = "model_trainer.hyperparameters.sagemaker_program"
    assert _refused(lambda: from_model_trainer(trainer)).keys() == {path}


def test_code_with_ignored_files_makes_equal_jobs(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / ".env").write_text("SECRET=1\n")
    source = sdk.names["SourceCode"](source_dir=str(tmp_path), entry_script="train.py")
    trainer = sdk.trainer(training_image=PYTORCH, source_code=source)
    assert from_model_trainer(trainer) == from_model_trainer(trainer)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [(["*.csv"], "gone is a link to something missing"), (["*"], "without ignore_patterns, holds")],
)
def test_code_that_cannot_be_copied_is_named(
    sdk: Sdk, tmp_path: Path, patterns: list[str], message: str
) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "gone").symlink_to("nowhere")
    source = sdk.names["SourceCode"](
        source_dir=str(tmp_path), entry_script="train.py", ignore_patterns=patterns
    )
    trainer = sdk.trainer(training_image=PYTORCH, source_code=source)
    refused = _refused(lambda: from_model_trainer(trainer))
    assert message in refused["model_trainer.source_code.source_dir"]


def test_settings_are_those_of_the_pipeline(sdk: Sdk) -> None:
    trainer = sdk.trainer()
    assert settings(trainer) == {"role": ROLE, "region": REGION}
    job = from_model_trainer(trainer)
    pipeline = Pipeline(name="p", workspace=WORKSPACE, stages=(job,), **settings(trainer))
    assert pipeline.context() == CONTEXT


def test_every_difference_has_a_reason() -> None:
    assert all(difference.reason for difference in DIFFERENCES if difference.sdk != "V2")


def test_enough_was_compared(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    count = next(compared)
    record_testsuite_property("requests compared with V3", count)
    assert count == 0 or count > 130
