"""Runs a training job as our pipeline requests it, and reads what its processes saw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestration import Cluster, Parameter, Pipeline, Source, TrainingJob, join, parameter
from orchestration.local import EmbeddedAws
from orchestration.local.run import run

SOURCE = Path(__file__).with_name("src")
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
PYTORCH = f"{REGISTRY}/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-sagemaker"
TENSORFLOW = f"{REGISTRY}/tensorflow-training:2.19.0-cpu-py312-ubuntu22.04-sagemaker"


@dataclass(frozen=True)
class Launched:
    """What came of a job."""

    job: str
    request: Mapping[str, Any]
    seen: list[dict[str, Any]] = field(default_factory=list)
    """What each process saw, by group and rank."""
    log: str = ""

    def column(self, name: str) -> list[Any]:
        return [one[name] for one in self.seen]


def launch(aws: EmbeddedAws, tmp_path: Path, *, entry_point: str = "add_up.py", **job: Any) -> Any:
    """Run a pipeline of one job to its end; fails where the job does."""
    seen = tmp_path / "seen"
    seen.mkdir()
    environment = {"SEEN": str(seen), **job.pop("environment", {})}
    given = {
        "name": "train",
        "image": PYTORCH,
        "source": Source.at(SOURCE, entry_point, runtime=True),
        "environment": environment,
        "max_runtime_s": 100,
        **job,
    }
    pipeline = Pipeline(
        name="launch",
        parameters={"bucket": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/launch"),
        stages=[TrainingJob(**given)],
    )
    report = run(pipeline, on="step-functions", parameters={"bucket": "launches"}, aws=aws)
    created = [call for call in report.calls if call.operation == "CreateTrainingJob"]
    request = created[-1].request
    log = aws.logs(request["TrainingJobName"])
    assert report.state == "succeeded", f"{report.cause}\n{log}"
    found = [json.loads(path.read_text()) for path in seen.glob("*.json")]
    found.sort(key=lambda one: (one["group"], one["rank"], one["host"]))
    return Launched(request["TrainingJobName"], request, found, log)


def hosts(count: int, instance_type: str = "ml.g5.12xlarge") -> Cluster:
    """So many hosts; those of the embedded AWS have two accelerators each."""
    return Cluster(instance_type=instance_type, instance_count=count)
