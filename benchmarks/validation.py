"""Time checking a training job of every strategy: the whole pipeline, and the job alone."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from orchestration import Pipeline

RUNS = 50
CODE = {"entry_point": "train.py", "uri": "s3://bucket/code.tar.gz"}
PYTORCH = {"name": "pytorch", "version": "2.2.0"}
TENSORFLOW = {"name": "tensorflow", "version": "2.11.0"}
SMP_V1 = {"kind": "smp_v1", "pipeline_parallel_degree": 2, "microbatches": 4, "ddp": True}
JOBS = {
    "torch_distributed": (PYTORCH, {"kind": "torch_distributed"}),
    "smddp": (PYTORCH, {"kind": "smddp"}),
    "pytorchddp": (PYTORCH, {"kind": "pytorchddp"}),
    "smp_v1": ({"name": "pytorch", "version": "1.13.1"}, SMP_V1),
    "smp_v2": (PYTORCH, {"kind": "smp_v2", "hybrid_shard_degree": 8}),
    "mpi": (PYTORCH, {"kind": "mpi", "processes_per_host": 8}),
    "horovod": (TENSORFLOW, {"kind": "horovod", "processes_per_host": 8}),
    "parameter_server": (TENSORFLOW, {"kind": "parameter_server"}),
    "multi_worker_mirrored": (TENSORFLOW, {"kind": "multi_worker_mirrored"}),
    "none": (PYTORCH, {"kind": "none"}),
}


def milliseconds(action: Callable[[], object]) -> float:
    action()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def described(framework: dict[str, str], strategy: dict[str, Any]) -> dict[str, Any]:
    stage = {
        "kind": "training_job",
        "framework": framework,
        "source": CODE,
        "channels": {"training": "s3://bucket/data"},
        "cluster": {"instance_type": "ml.p4d.24xlarge", "instance_count": 2},
        "strategy": strategy,
    }
    return {
        "name": "timed",
        "workspace": "s3://bucket",
        "region": "us-west-2",
        "stages": {"train": stage},
    }


def main() -> None:
    print(f"{'strategy':24} {'pipeline':>10} {'its job':>10}")
    for name, (framework, strategy) in JOBS.items():
        data = described(framework, strategy)
        pipeline = Pipeline.parse(data)
        [job], context = pipeline.stages, pipeline.context()
        whole = milliseconds(lambda data=data: Pipeline.parse(data))
        alone = milliseconds(lambda job=job, context=context: list(job.check(context)))
        print(f"{name:24} {whole:7.2f} ms {alone:7.2f} ms")


if __name__ == "__main__":
    main()
