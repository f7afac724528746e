"""Small pipelines to try compositions with."""

from __future__ import annotations

from typing import Any

from orchestration import Pipeline
from orchestration.graph import Choose, Graph, Guarded, Step, all_steps

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
SUBNET, GROUP = "subnet-0123456789abcdef0", "sg-0123456789abcdef0"

Data = dict[str, Any]


def job(name: str, **further: Any) -> Data:
    """A training job that keeps checkpoints."""
    return {
        "kind": "training_job",
        "name": name,
        "image": IMAGE,
        "cluster": {"instance_type": "ml.m5.xlarge"},
        "checkpoints": {},
        **further,
    }


def lustre(name: str, **further: Any) -> Data:
    """A file system that lives for its readers."""
    destination = {"kind": "fsx_lustre", "subnet": SUBNET, "security_groups": [GROUP]}
    return {
        "kind": "data_staging",
        "name": name,
        "source": "s3://source/data",
        "destination": destination,
        **further,
    }


def exporting(name: str, *paths: str, **further: Any) -> Data:
    """A file system with a directory for results, of which some are exported."""
    stage = lustre(name, **further)
    links = [{"path": "/results"}]
    return {**stage, "destination": {**stage["destination"], "links": links, "export": paths}}


def writer(name: str, system: str, path: str = "/results", **further: Any) -> Data:
    """A training job that writes to a directory of a file system."""
    mounted = {"file_system": {"ref": f"{system}.file_system_root"}, "path": path, "access": "rw"}
    vpc = {"subnets": [SUBNET], "security_groups": [GROUP]}
    channels = {"results": {"kind": "fsx_lustre", **mounted}}
    return job(name, channels=channels, vpc=vpc, **further)


def reader(name: str, *systems: str, **further: Any) -> Data:
    """A training job that mounts file systems."""
    channels = {
        system: {"kind": "fsx_lustre", "file_system": {"ref": f"{system}.file_system"}}
        for system in systems
    }
    vpc = {"subnets": [SUBNET], "security_groups": [GROUP]}
    return job(name, channels=channels, vpc=vpc, **further)


def evaluation(name: str, of: str, on_miss: str | None = "stop", **further: Any) -> Data:
    """An evaluation with a threshold, or without where ``on_miss`` is ``None``."""
    return {
        "kind": "checkpoint_evaluation",
        "name": name,
        "checkpoints": {"ref": f"{of}.checkpoints"},
        "data": "s3://source/holdout",
        "image": IMAGE,
        "source": {"entry_point": "evaluate.py", "uri": "s3://code/evaluate"},
        "instance_type": "ml.m5.xlarge",
        "metric": "accuracy",
        "direction": "max",
        "threshold": {"value": 0.9, "on_miss": on_miss} if on_miss is not None else None,
        **further,
    }


def deployment(name: str, of: str, **further: Any) -> Data:
    """A deployment of the best checkpoint."""
    return {
        "kind": "deployment",
        "name": name,
        "model_data": {"ref": f"{of}.best_checkpoint"},
        "image": IMAGE,
        "instance_type": "ml.m5.xlarge",
        **further,
    }


def pipeline(*stages: Data, **further: Any) -> Pipeline:
    """A pipeline of some stages."""
    data = {
        "name": "pipeline",
        "workspace": "s3://bucket/pipeline",
        "role": "arn:aws:iam::111122223333:role/Execution",
        "stages": list(stages),
    }
    return Pipeline.parse(data | further)


def named(graph: Graph, name: str) -> Step:
    """The step of a name, wherever it stands."""
    [found] = [step for step in all_steps(graph) if step.name == name]
    return found


def stages_in(graph: Graph) -> set[str]:
    """The stages that have a step of theirs in a graph, at any depth."""
    return {step.name.split(".")[0] for step in all_steps(graph)}


def outline(graph: Graph) -> list[Any]:
    """Which stages stand where, in order: ``[guard, [inside…]]`` and ``[gate, [behind…]]``."""
    found: list[Any] = []
    for step in graph.steps:
        stage = step.name.split(".")[0]
        if isinstance(step, Guarded):
            found.append([step.name, outline(step.body)])
        elif isinstance(step, Choose) and ".passed_" in step.name:
            found.append([step.name, outline(step.then)])
        elif stage not in found:
            found.append(stage)
    return found
