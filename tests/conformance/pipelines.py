"""The pipelines that every driver must do the same with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestration import (
    CheckpointEvaluation,
    Checkpoints,
    Cluster,
    DataStaging,
    Deployment,
    ExistingFileSystem,
    FileSystemChannel,
    LustreLink,
    NewFileSystem,
    NoStrategy,
    Parameter,
    Pipeline,
    S3Destination,
    SmokeTest,
    Source,
    Threshold,
    TrainingJob,
    TuningJob,
    Vpc,
    join,
    parameter,
)

SOURCE = Path(__file__).with_name("src")
SEARCH = Path(__file__).with_name("src_tuning")
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/conformance:1"
LITERAL = "{{ ds }} {% $x %} $.y \"double\" 'single' back\\slash\nline\tπ 漢 😀 %}"

PARAMETERS = {
    "role": "arn:aws:iam::123456789012:role/SageMakerExecution",
    "bucket": "workspace",
    "data": "s3://incoming/set",
}


def training(name: str, data: Any, **fields: Any) -> TrainingJob:
    given: dict[str, Any] = {
        "name": name,
        "image": IMAGE,
        "source": Source.at(SOURCE, "train.py"),
        "channels": {"training": data},
        "cluster": Cluster(instance_type="ml.c5.xlarge"),
        "checkpoints": Checkpoints(),
        "max_runtime_s": 600,
    }
    return TrainingJob(**{**given, **fields})


def evaluation(name: str, train: TrainingJob, **fields: Any) -> CheckpointEvaluation:
    given: dict[str, Any] = {
        "name": name,
        "checkpoints": train.outputs.checkpoints,
        "checkpoint_prefix": "step-",
        "data": join(parameter("data"), "/holdout"),
        "image": IMAGE,
        "source": Source.at(SOURCE, "evaluate.py"),
        "instance_type": "ml.c5.xlarge",
        "metric": "score",
        "direction": "max",
    }
    return CheckpointEvaluation(**{**given, **fields})


def deployment(name: str, model_data: Any, **fields: Any) -> Deployment:
    return Deployment(
        name=name,
        model_data=model_data,
        image=IMAGE,
        instance_type="ml.c5.xlarge",
        smoke_test=SmokeTest(request={"text": LITERAL}),
        **fields,
    )


def pipeline(name: str, *stages: Any, region: str | None = None) -> Pipeline:
    return Pipeline(
        name=name,
        region=region,
        parameters={"bucket": Parameter(), "data": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/", name),
        stages=stages,
    )


def candidates() -> Pipeline:
    """Two candidates trained side by side, each evaluated, over data with awkward names."""
    staged = DataStaging(name="staging", source=parameter("data"))
    data = join(staged.outputs.location, "/train")
    small = training("small", data, hyperparameters={"scores": "0.4,0.6", "note": LITERAL})
    large = training(
        "large",
        data,
        cluster=Cluster(instance_type="ml.c5.xlarge", instance_count=2),
        hyperparameters={"scores": "0.8,0.5", "ratio": 1e-5, "flag": True},
        environment={"LITERAL": "{{ x }} $.y {% z %}"},
    )
    return pipeline(
        "candidates",
        staged,
        small,
        large,
        evaluation("evaluate_small", small),
        evaluation("evaluate_large", large, direction="min"),
    )


def gated(on_miss: str) -> Pipeline:
    """A gate that no checkpoint passes, before a deployment."""
    train = training("train", join(parameter("data"), "/train"))
    threshold = Threshold.model_validate({"value": 0.9, "on_miss": on_miss})
    evaluate = evaluation("evaluate", train, threshold=threshold)
    deploy = deployment("deploy", evaluate.outputs.best_checkpoint)
    return pipeline(f"gate-{on_miss}", train, evaluate, deploy)


def judged(scores: str) -> Pipeline:
    """Checkpoints with scores, the best of them chosen."""
    train = training("train", join(parameter("data"), "/train"), hyperparameters={"scores": scores})
    return pipeline("judged", train, evaluation("evaluate", train))


def served() -> Pipeline:
    """The best of three checkpoints behind an endpoint."""
    train = training("train", join(parameter("data"), "/train"))
    evaluate = evaluation("evaluate", train, threshold=Threshold(value=0.6))
    return pipeline(
        "served", train, evaluate, deployment("deploy", evaluate.outputs.best_checkpoint)
    )


def searched() -> Pipeline:
    """The best of a search behind an endpoint."""
    tune = TuningJob.model_validate(
        {
            "name": "tune",
            "image": IMAGE,
            "hyperparameters": {"mode": "serve", "times": 2},
            "cluster": {"instance_type": "ml.c5.xlarge"},
            "objective": {"metric": "score", "direction": "max", "regex": "score=([0-9.]+)"},
            "ranges": {"rate": {"categorical": [0.1, 0.5]}},
            "search": "grid",
            "local": {"command": ["python3", "train.py"], "directory": str(SEARCH)},
        }
    )
    deploy = Deployment(
        name="deploy",
        model_data=tune.outputs.model_artifacts,
        model_archive=True,
        image=IMAGE,
        instance_type="ml.c5.xlarge",
    )
    return pipeline("searched", tune, deploy)


def file_system(fail: str = "") -> Pipeline:
    """Training over a file system of the run's own; told to fail, while it exists."""
    staged = DataStaging(
        name="staging",
        source=parameter("data"),
        destination=NewFileSystem(subnet="subnet-0123abcd", security_groups=("sg-0123abcd",)),
    )
    train = training(
        "train",
        FileSystemChannel(file_system=staged.outputs.file_system, path="/train"),
        vpc=Vpc(subnets=("subnet-0123abcd",), security_groups=("sg-0123abcd",)),
        strategy=NoStrategy(),
        hyperparameters={"fail": fail, "scores": "0.5"},
    )
    return pipeline("file-system", staged, train, evaluation("evaluate", train))


def exporting(**destination: Any) -> Pipeline:
    """Training that writes to a file system, whose results are exported before it is deleted."""
    return writing("exporting", LustreLink(path="/results"), **destination)


def kept(**destination: Any) -> Pipeline:
    """The same over a file system that the next run finds again."""
    results = LustreLink(path="/results", uri="s3://incoming/results", imports=False)
    return writing("kept", results, **{"keep_for_h": 48, **destination})


def writing(name: str, results: LustreLink, **destination: Any) -> Pipeline:
    staged = DataStaging(
        name="staging",
        source=parameter("data"),
        destination=NewFileSystem(
            subnet="subnet-0123abcd",
            security_groups=("sg-0123abcd",),
            links=(results,),
            export=("/results",),
            **destination,
        ),
    )
    root = staged.outputs.file_system_root
    train = training(
        "train",
        FileSystemChannel(file_system=staged.outputs.file_system, path="/train"),
        vpc=Vpc(subnets=("subnet-0123abcd",), security_groups=("sg-0123abcd",)),
        strategy=NoStrategy(),
        hyperparameters={"scores": "0.5"},
    )
    channels = {
        **train.channels,
        "results": FileSystemChannel(file_system=root, path="/results", access="rw"),
    }
    return pipeline(name, staged, train.model_copy(update={"channels": channels}))


def attached(file_system_id: str) -> Pipeline:
    """Training over a file system that someone else keeps."""
    staged = DataStaging(
        name="attach",
        destination=ExistingFileSystem(file_system_id=file_system_id, mount_path="/kept"),
    )
    train = training(
        "train",
        FileSystemChannel(file_system=staged.outputs.file_system, path="/train"),
        vpc=Vpc(subnets=("subnet-0123abcd",), security_groups=("sg-0123abcd",)),
    )
    return pipeline("attached", staged, train)


def deployed(name: str = "deployed", **fields: Any) -> Pipeline:
    """A model that lies in S3, behind an endpoint."""
    model = join(parameter("data"), "/model")
    return pipeline(name, deployment("deploy", model, **fields))


DATASYNC_ROLE = "arn:aws:iam::123456789012:role/DataSync"


def synced(**fields: Any) -> Pipeline:
    """Data that DataSync copies."""
    destination = S3Destination(**{"copy_by": "datasync", "datasync_role": DATASYNC_ROLE, **fields})
    return pipeline(
        "synced", DataStaging(name="staging", source=parameter("data"), destination=destination)
    )


BATCH_ROLE = "arn:aws:iam::123456789012:role/BatchOperations"


def listed(**fields: Any) -> Pipeline:
    """Versions of objects that a manifest lists, copied by S3 Batch Operations."""
    destination = S3Destination(
        copy_by="batch",
        manifest=join("s3://", parameter("bucket"), "/lists/manifest.csv"),
        manifest_versions=True,
        **{"batch_role": BATCH_ROLE, **fields},
    )
    return pipeline(
        "listed", DataStaging(name="staging", source=parameter("data"), destination=destination)
    )


def filled(file_system_id: str = "fs-0123456789abcdef0", **fields: Any) -> Pipeline:
    """Data that DataSync copies onto a file system that someone else keeps."""
    destination = ExistingFileSystem(
        file_system_id=file_system_id,
        mount_path="/set",
        security_groups=("sg-0123abcd",),
        datasync_role=DATASYNC_ROLE,
        **fields,
    )
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    return pipeline("filled", staging, region="us-east-1")


def ending() -> Pipeline:
    """One stage copies objects; the other is a transfer, which is a branch on Airflow."""
    staging = DataStaging(name="staging", source=parameter("data"), unless_unchanged="end_run")
    by_service = S3Destination(copy_by="datasync", datasync_role=DATASYNC_ROLE)
    further = DataStaging(
        name="further",
        source=parameter("data"),
        destination=by_service,
        fingerprint=True,
        after=("staging",),
    )
    return pipeline("ending", staging, further)
