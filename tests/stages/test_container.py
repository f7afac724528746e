"""What a training job runs, and the hyperparameters that its toolkit gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stages.training import CODE, call, job, refused, sent, warned

PYTORCH = {"name": "pytorch", "version": "2.8.0"}
GPU = {"instance_type": "ml.p4d.24xlarge"}


def test_a_framework_s_image_is_that_of_the_region_and_the_machine() -> None:
    request = sent(job(image=None, framework=PYTORCH, source=CODE, cluster=GPU))
    assert request["AlgorithmSpecification"]["TrainingImage"] == (
        "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
    )
    cpu = sent(job(image=None, framework=PYTORCH, source=CODE), region="cn-north-1")
    assert cpu["AlgorithmSpecification"]["TrainingImage"] == (
        "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-training:2.8.0-cpu-py312"
    )


def test_the_toolkit_gets_what_the_sdk_sends() -> None:
    request = sent(job(source=CODE, hyperparameters={"epochs": 3, "name": "a"}, log_level=10))
    assert request["HyperParameters"] == {
        "epochs": "3",
        "name": '"a"',
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": '"s3://code/sourcedir.tar.gz"',
        "sagemaker_container_log_level": "10",
        "sagemaker_job_name": '"p-train-0123456789ab"',
        "sagemaker_region": '"us-west-2"',
    }


@pytest.mark.parametrize(
    ("strategy", "model_dir", "expected"),
    [
        ("none", None, '"s3://bucket/0123456789ab/train/model"'),
        ("mpi", None, '"/opt/ml/model"'),
        ("none", "s3://b/m", '"s3://b/m"'),
        ("none", False, None),
    ],
)
def test_a_tensorflow_script_is_told_where_to_write(
    strategy: str, model_dir: Any, expected: str | None
) -> None:
    framework = {
        "name": "tensorflow",
        "version": "2.11.0",
        "python_version": "py39",
        "model_dir": model_dir,
    }
    stage = job(image=None, framework=framework, source=CODE, strategy={"kind": strategy})
    assert sent(stage)["HyperParameters"].get("model_dir") == expected


def test_an_entry_point_of_the_container_s_own() -> None:
    request = sent(job(entrypoint=["/bin/run", "--all"], arguments=["x"]))
    algorithm = request["AlgorithmSpecification"]
    assert algorithm["ContainerEntrypoint"] == ["/bin/run", "--all"]
    assert algorithm["ContainerArguments"] == ["x"]


def test_an_algorithm_brings_its_container() -> None:
    algorithm = "arn:aws:sagemaker:us-west-2:111122223333:algorithm/scan"
    request = sent(job(image=None, algorithm=algorithm, metrics_time_series=True))
    assert request["AlgorithmSpecification"] == {
        "AlgorithmName": algorithm,
        "TrainingInputMode": "File",
        "EnableSageMakerMetricsTimeSeries": True,
    }


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"image": ""}, "image", "is empty; give the registry path"),
        ({"image": None}, "image", "is needed; or a framework, or an algorithm"),
        ({"image": None, "framework": {"name": "pytorch"}}, "framework.version", "is needed"),
        (
            {"image": None, "framework": {**PYTORCH, "python_version": "py27"}},
            "framework.python_version",
            "has no 'py27'",
        ),
        (
            {"image": None, "framework": {"name": "pytorch", "version": "2.88"}},
            "framework.version",
            "has no '2.88' for training",
        ),
        (
            {"image": None, "framework": {"name": "PyTorch", "version": "2.8.0"}},
            "framework.name",
            "did you mean 'pytorch'?",
        ),
        ({"algorithm": "scan"}, "algorithm", "leave out image and framework"),
        (
            {"image": None, "algorithm": "scan", "source": CODE},
            "source",
            "an algorithm brings its own code",
        ),
        ({"entrypoint": ["run"], "source": CODE}, "entrypoint", "replaces the training toolkit"),
        (
            {"entrypoint": ["run"], "strategy": {"kind": "mpi"}},
            "entrypoint",
            "which is what starts mpi",
        ),
        (
            {"framework": {"name": "pytorch", "model_dir": "s3://b/m"}},
            "framework.model_dir",
            "only TensorFlow scripts receive this",
        ),
        ({"metrics": {"loss": "loss=.*"}}, "metrics.loss", "has no group"),
        ({"metrics": {"loss": "loss=("}}, "metrics.loss", "expected a regular expression"),
    ],
)
def test_what_can_not_be_run(given: dict[str, Any], path: str, message: str) -> None:
    assert message in refused(job(**given))[path]


def test_a_framework_without_a_region_has_no_image() -> None:
    found = refused(job(image=None, framework=PYTORCH), region=None)
    assert "region: us-west-2" in found["framework"]


def test_a_machine_known_in_the_run_only_needs_a_processor() -> None:
    cluster = {"instance_type": {"parameter": "machine"}}
    stage = job(image=None, framework=PYTORCH, cluster=cluster, source=CODE)
    parameters: dict[str, Any] = {"machine": {}}
    assert "framework.processor" in refused(stage, parameters=parameters)
    stage["framework"] = {**PYTORCH, "processor": "gpu"}
    algorithm = call(stage, parameters=parameters).operation.request["AlgorithmSpecification"]
    assert algorithm["TrainingImage"].endswith("2.8.0-gpu-py312")  # type: ignore[index,call-overload,union-attr]  # a literal image


def test_what_is_recorded_of_a_job() -> None:
    rule = {"name": "r", "image": "evaluator", "parameters": {"rule_to_invoke": "x"}}
    request = sent(
        job(
            debugger={"uri": "s3://b/d", "collections": [{"name": "losses"}], "rules": [rule]},
            profiler={"uri": "s3://b/p", "interval_ms": 500, "rules": [rule]},
            tensorboard={"uri": "s3://b/t"},
            experiment={"name": "e", "trial": "t"},
            output={"uri": "s3://b/o", "kms_key": "k", "compression": "NONE"},
            max_retries=2,
            tags={"team": "vision"},
        )
    )
    told = {
        "RuleConfigurationName": "r",
        "RuleEvaluatorImage": "evaluator",
        "RuleParameters": {"rule_to_invoke": "x"},
    }
    assert request["DebugHookConfig"] == {
        "S3OutputPath": "s3://b/d",
        "CollectionConfigurations": [{"CollectionName": "losses"}],
    }
    assert request["DebugRuleConfigurations"] == [told]
    assert request["ProfilerConfig"] == {
        "S3OutputPath": "s3://b/p",
        "DisableProfiler": False,
        "ProfilingIntervalInMilliseconds": 500,
    }
    assert request["ProfilerRuleConfigurations"] == [told]
    assert request["TensorBoardOutputConfig"] == {"S3OutputPath": "s3://b/t"}
    assert request["ExperimentConfig"] == {"ExperimentName": "e", "TrialName": "t"}
    assert request["OutputDataConfig"] == {
        "S3OutputPath": "s3://b/o",
        "KmsKeyId": "k",
        "CompressionType": "NONE",
    }
    assert request["RetryStrategy"] == {"MaximumRetryAttempts": 2}
    assert {"Key": "team", "Value": "vision"} in request["Tags"]


def test_an_isolated_container_gets_its_code_through_a_channel() -> None:
    request = sent(job(source=CODE, enable_network_isolation=True))
    [channel] = request["InputDataConfig"]
    assert channel["ChannelName"] == "code"
    assert channel["DataSource"]["S3DataSource"]["S3Uri"] == CODE["uri"]
    code = '"/opt/ml/input/data/code/sourcedir.tar.gz"'
    assert request["HyperParameters"]["sagemaker_submit_directory"] == code
    taken = job(source=CODE, enable_network_isolation=True, channels={"code": "s3://b/x"})
    assert "choose another name" in refused(taken)["channels.code"]


def test_spot_without_checkpoints_is_warned_of() -> None:
    assert "starts from scratch" in warned(job(spot={"max_wait_s": 90_000}))["spot"]


def test_a_profiler_is_off_or_profiles() -> None:
    assert sent(job(profiler={"enabled": False}))["ProfilerConfig"] == {"DisableProfiler": True}
    rule = {"name": "r", "image": "evaluator"}
    found = refused(job(profiler={"enabled": False, "rules": [rule]}))
    assert "enabled is false" in found["profiler.rules"]
    place = {"enabled": False, "uri": {"parameter": "place"}}
    found = refused(job(profiler=place), parameters={"place": {}})
    assert "enabled is false" in found["profiler.uri"]
    output = {"uri": "s3://bucket/out"}
    profiled = sent(job(profiler={}, output=output))["ProfilerConfig"]
    assert profiled == {"DisableProfiler": False, "S3OutputPath": "s3://bucket/out"}


def test_isolated_code_keeps_its_name_and_comes_as_a_file_in_every_mode() -> None:
    code = {"entry_point": "train.py", "uri": "s3://code/of/mine.tgz"}
    request = sent(job(source=code, enable_network_isolation=True, input_mode="Pipe"))
    [channel] = request["InputDataConfig"]
    assert channel["InputMode"] == "File"
    directory = '"/opt/ml/input/data/code/mine.tgz"'
    assert request["HyperParameters"]["sagemaker_submit_directory"] == directory


def test_further_fields_may_hold_the_channels_that_there_are_none_of() -> None:
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}}
    channels = [{"ChannelName": "a", "DataSource": source}]
    assert sent(job(extra_request={"InputDataConfig": channels}))["InputDataConfig"] == channels


def test_a_profiler_reads_at_the_intervals_that_there_are() -> None:
    found = refused(job(profiler={"interval_ms": 300}))
    assert "100, 200, 500, 1000, 5000 or 60000" in found["profiler.interval_ms"]


@pytest.mark.parametrize(
    ("further", "value", "said"),
    [
        ({}, "x" * 2500, None),
        ({}, "x" * 2501, "has 2501 characters; the most is 2500"),
        ({"source": CODE}, "x" * 2498, None),
        ({"source": CODE}, "x" * 2499, "has 2501 characters as JSON"),
        ({"source": CODE}, "é" * 500, "has 3002 characters as JSON"),
    ],
)
def test_a_value_is_as_long_as_it_is_sent(
    further: dict[str, Any], value: str, said: str | None
) -> None:
    given = job(hyperparameters={"a": value}, **further)
    if said is None:
        assert value in sent(given)["HyperParameters"]["a"]
    else:
        assert said in refused(given)["hyperparameters.a"]


@pytest.mark.parametrize(
    ("framework", "cuda"),
    [
        ({"name": "pytorch", "version": "2.5.1"}, "12.4"),
        ({"name": "huggingface", "version": "4.26.0"}, "11.7"),
        ({"name": "huggingface", "version": "4.17.0", "base": "pytorch1.10.2"}, "11.3"),
    ],
)
def test_a_container_that_cannot_drive_the_gpus_is_refused_with_the_way_out(
    framework: dict[str, str], cuda: str
) -> None:
    cluster = {"instance_type": "ml.p6-b200.48xlarge"}
    problem = refused(job(image=None, framework=framework, source=CODE, cluster=cluster))[
        "strategy"
    ]
    assert f"need CUDA 12.8 or later; the container has CUDA {cuda}" in problem
    assert "use PyTorch 2.7.1 or later" in problem
