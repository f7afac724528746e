"""The pipelines that these tests deploy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from orchestration import (
    CheckpointEvaluation,
    Checkpoints,
    Cluster,
    DataStaging,
    Deployment,
    FileSystemChannel,
    NewFileSystem,
    Parameter,
    Pause,
    Pipeline,
    S3Channel,
    SmokeTest,
    Source,
    TrainingJob,
    Vpc,
    join,
    parameter,
)
from orchestration.deploy import Account

ACCOUNT = Account(id="123456789012", region="us-east-1")
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1"
PARAMETERS = {
    "role": "arn:aws:iam::123456789012:role/SageMakerExecution",
    "bucket": "workspace",
    "data": "s3://incoming/set",
}
SLEEPING = """\
name: sleeping
parameters: {bucket: {}, seconds: {default: "0"}}
workspace: {join: ["s3://", {parameter: bucket}, /sleeping]}
stages:
  train:
    kind: training_job
    image: image
    entrypoint: [sleep, {parameter: seconds}]
    cluster: {instance_type: ml.c5.xlarge}
    max_runtime_s: 1000
"""
"""A job that sleeps, as YAML."""


def source_folder(directory: Path) -> Path:
    """A folder of code."""
    (directory / "lib").mkdir(parents=True, exist_ok=True)
    (directory / "train.py").write_text("print('training')\n")
    (directory / "lib" / "naïve name.py").write_text("A = 1\n")
    return directory


def digits(code: Path, endpoint_name: Any = None, **fields: Any) -> Pipeline:
    """All four stages, named as the documentation does."""
    staged = DataStaging(name="staging", source=parameter("data"))
    train = TrainingJob(
        name="train",
        image=IMAGE,
        source=Source.at(code, "train.py"),
        channels={"training": S3Channel(uri=staged.outputs.location)},
        cluster=Cluster(instance_type="ml.c5.xlarge"),
        checkpoints=Checkpoints(),
    )
    evaluate = CheckpointEvaluation(
        name="evaluate",
        checkpoints=train.outputs.checkpoints,
        checkpoint_prefix="epoch-",
        data=staged.outputs.location,
        image=IMAGE,
        source=Source.at(code, "train.py"),
        instance_type="ml.c5.xlarge",
        metric="accuracy",
        direction="max",
    )
    deploy = Deployment(
        name="deploy",
        model_data=evaluate.outputs.best_checkpoint,
        image=IMAGE,
        instance_type="ml.c5.xlarge",
        endpoint_name=endpoint_name,
        smoke_test=SmokeTest(request=[1]),
    )
    given: dict[str, Any] = {
        "name": "digits",
        "parameters": {"bucket": Parameter(), "data": Parameter()},
        "workspace": join("s3://", parameter("bucket"), "/digits"),
        "stages": (staged, train, evaluate, deploy),
    }
    return Pipeline(**{**given, **fields})


def lustre(**fields: Any) -> Pipeline:
    """Training on a file system of its own."""
    staged = DataStaging(
        name="staging",
        source=parameter("data"),
        destination=NewFileSystem(
            subnet="subnet-0123456789abcdef0", security_groups=("sg-0123456789abcdef0",), **fields
        ),
    )
    train = TrainingJob(
        name="train",
        image=IMAGE,
        channels={"training": FileSystemChannel(file_system=staged.outputs.file_system)},
        cluster=Cluster(instance_type="ml.c5.xlarge"),
        vpc=Vpc(subnets=("subnet-0123456789abcdef0",), security_groups=("sg-0123456789abcdef0",)),
    )
    return Pipeline(
        name="lustre",
        parameters={"bucket": Parameter(), "data": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/lustre"),
        stages=(staged, train),
    )


def copying(**fields: Any) -> Pipeline:
    """A staging of data and nothing else: the quickest pipeline there is."""
    given: dict[str, Any] = {
        "name": "copying",
        "parameters": {"bucket": Parameter(), "data": Parameter()},
        "workspace": join("s3://", parameter("bucket"), "/copying"),
        "stages": (DataStaging(name="staging", source=parameter("data")),),
    }
    return Pipeline(**{**given, **fields})


def copying_file(directory: Path, cron: str, description: str = "First.", more: str = "") -> Path:
    """The same as a file, which its definition carries: a change of the schedule changes that."""
    path = directory / "copying.yaml"
    path.write_text(
        f"name: copying\ndescription: {description}\nparameters: {{bucket: {{}}, data: {{}}}}\n"
        'workspace: {join: ["s3://", {parameter: bucket}, /copying]}\n'
        f'schedule: {{cron: "{cron}"}}\n{more}'
        "stages: {staging: {kind: data_staging, source: {parameter: data}}}\n"
    )
    return path


def resting(**fields: Any) -> Pipeline:
    """A pause, for which nobody calls AWS."""
    given: dict[str, Any] = {
        "name": "resting",
        "parameters": {"bucket": Parameter(), "data": Parameter()},
        "workspace": join("s3://", parameter("bucket"), "/resting"),
        "overlap": "allow",
        "stages": (Pause(name="rest", duration_s=1),),
    }
    return Pipeline(**{**given, **fields})


KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
_SLEEPS: dict[str, Any] = {"image": IMAGE, "max_runtime_s": 600}


def worked() -> Pipeline:
    """Jobs that end at once, in a network, with keys; what they made is registered and told."""
    cluster = {"instance_type": "ml.c5.xlarge", "volume_kms_key": KEY}
    network = {"subnets": ["subnet-0123abcd"], "security_groups": ["sg-0123abcd"]}
    stages: dict[str, Any] = {
        "train": {
            "kind": "training_job",
            "entrypoint": ["sleep", "0"],
            "channels": {"training": {"uri": {"parameter": "data"}}},
            "checkpoints": {},
            "cluster": cluster,
            "vpc": network,
            "extra_request": {"OutputDataConfig": {"KmsKeyId": KEY}},
            **_SLEEPS,
        },
        "split": {
            "kind": "processing_job",
            "command": ["sleep", "0"],
            "inputs": {"set": {"uri": {"parameter": "data"}}},
            "results": {"parts": {}},
            "cluster": {"instance_type": "ml.c5.xlarge"},
            **_SLEEPS,
        },
        "tune": {
            "kind": "tuning_job",
            "local": {"command": ["echo", "score=0.5"]},
            "channels": {"training": {"uri": {"parameter": "data"}}},
            "cluster": {"instance_type": "ml.c5.xlarge"},
            "objective": {"metric": "score", "direction": "max", "regex": "score=([0-9.]+)"},
            "ranges": {"rate": {"categorical": [0.1]}},
            "search": "grid",
            **_SLEEPS,
        },
        "register": {
            "kind": "model_registration",
            "package_group": "prices",
            "model_data": {"ref": "train.model_artifacts"},
            "model_archive": True,
            "image": IMAGE,
        },
        "decide": {
            "kind": "model_approval",
            "model_package": {"ref": "register.model_package"},
            "approved": True,
        },
        "tell": {
            "kind": "aws_call",
            "after": ["decide"],
            "service": "sqs",
            "operation": "CreateQueue",
            "request": {"QueueName": "worked"},
        },
    }
    return Pipeline.parse(
        {
            "name": "worked",
            "region": ACCOUNT.region,
            "parameters": {"bucket": {}, "data": {}},
            "workspace": {"join": ["s3://", {"parameter": "bucket"}, "/worked"]},
            "schedule": {"cron": "0 * * * *", "timezone": "UTC"},
            "stages": stages,
        }
    )


def short_pause(_: float) -> None:
    """Let some time pass for what is waited for: looks without a pause are soon over."""
    time.sleep(0.1)
