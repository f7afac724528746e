"""Time lowering and rendering of pipelines whose stages wait for each other in one long chain."""

import argparse
import time
from collections.abc import Callable, Sequence

from orchestration import (
    CheckpointEvaluation,
    Cluster,
    DataStaging,
    Deployment,
    FileSystemChannel,
    NewFileSystem,
    Pipeline,
    Source,
    Threshold,
    TrainingJob,
    UnsupportedError,
    Vpc,
)
from orchestration.backends import airflow, stepfunctions
from orchestration.stages import Stage

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training:1"
VPC = Vpc(subnets=("subnet-0123456789abcdef0",), security_groups=("sg-0123456789abcdef0",))


def training(name: str, after: tuple[str, ...]) -> list[Stage]:
    machines = Cluster(instance_type="ml.m5.xlarge", instance_count=1)
    return [TrainingJob(name=name, image=IMAGE, cluster=machines, checkpoints={}, after=after)]


def staging(name: str, after: tuple[str, ...]) -> list[Stage]:
    return [DataStaging(name=name, source="s3://bucket/data", after=after)]


def evaluation(name: str, after: tuple[str, ...]) -> list[Stage]:
    return [
        CheckpointEvaluation(
            name=name,
            checkpoints="s3://bucket/checkpoints",
            data="s3://bucket/data",
            image=IMAGE,
            source=Source(uri="s3://bucket/source", entry_point="evaluate.py"),
            instance_type="ml.m5.large",
            metric="accuracy",
            direction="max",
            threshold=Threshold(value=0.9),
            after=after,
        )
    ]


def deployment(name: str, after: tuple[str, ...]) -> list[Stage]:
    return [
        Deployment(
            name=name,
            model_data="s3://bucket/model",
            image=IMAGE,
            instance_type="ml.m5.large",
            after=after,
        )
    ]


def lustre(name: str, after: tuple[str, ...]) -> list[Stage]:
    """A file system, and the training job inside its guard."""
    system = NewFileSystem(subnet=VPC.subnets[0], security_groups=VPC.security_groups)
    data = DataStaging(
        name=f"{name}_data", source="s3://bucket/data", destination=system, after=after
    )
    job = TrainingJob(
        name=name,
        image=IMAGE,
        cluster=Cluster(instance_type="ml.m5.xlarge", instance_count=1),
        channels={"train": FileSystemChannel(file_system=data.outputs.file_system)},
        vpc=VPC,
    )
    return [data, job]


KINDS = (training, staging, evaluation, deployment, lustre)
Links = Callable[[str, tuple[str, ...]], list[Stage]]


def chain(link: Links, length: int) -> list[Stage]:
    stages: list[Stage] = []
    while len(stages) < length:
        stages += link(f"stage{len(stages)}", tuple(stage.name for stage in stages[-1:]))
    return stages


def seconds(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def measured(stages: Sequence[Stage]) -> tuple[float, float, float | None]:
    """CPU seconds of lowering, and of rendering for Airflow and for Step Functions."""

    def build() -> Pipeline:
        return Pipeline(name="chain", workspace="s3://bucket", stages=tuple(stages))

    workflow = build().lower()
    lowering, dag = seconds(build), seconds(lambda: airflow.render(workflow))
    try:
        return lowering, dag, seconds(lambda: stepfunctions.render(workflow))
    except UnsupportedError:  # It is longer, or writes more events, than may be.
        return lowering, dag, None


def shown(value: float | None, before: float | None) -> str:
    if value is None:
        return f"{'too long':>14}"
    return f"{value:7.2f} s" + (f" {value / before:4.1f}" if before else " " * 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "lengths", nargs="*", type=int, default=[100, 200, 500, 1000], help="numbers of stages"
    )
    lengths = parser.parse_args().lengths
    print("CPU seconds, and how many times those of the chain before")
    print(f"{'':22} {'lower':>14} {'Airflow':>14} {'Step Functions':>14}")
    for kind in KINDS:
        before: tuple[float | None, ...] = (None, None, None)
        for length in lengths:
            now = measured(chain(kind, length))
            print(f"{kind.__name__:12} {length:>9}", *map(shown, now, before))
            before = now


if __name__ == "__main__":
    main()
