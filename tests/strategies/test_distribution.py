"""The SDK's `distribution=` is read as a strategy, or refused with every reason."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import PipelineError
from orchestration.strategies import (
    MPI,
    SMDDP,
    MultiWorkerMirrored,
    NoStrategy,
    ParameterServer,
    PyTorchDDP,
    SMPv1,
    SMPv2,
    Strategy,
    TorchDistributed,
)
from orchestration.strategies.distribution import from_distribution
from tests.strategies.captured import InstanceGroup

ON = {"enabled": True}
GPU = InstanceGroup("gpu", "ml.p4d.24xlarge", 2)


def smp(**parameters: Any) -> dict[str, Any]:
    return {"modelparallel": {**ON, "parameters": parameters}}


@pytest.mark.parametrize(
    ("distribution", "framework", "strategy"),
    [
        ({}, "pytorch", NoStrategy()),
        ({"mpi": {"enabled": False}}, "pytorch", NoStrategy()),
        ({"torch_distributed": ON}, "pytorch", TorchDistributed()),
        ({"torch_distributed": ON, "mpi": {"enabled": False}}, "pytorch", TorchDistributed()),
        (
            {"pytorchddp": {**ON, "custom_mpi_options": "-v"}},
            "huggingface",
            PyTorchDDP(custom_mpi_options="-v"),
        ),
        ({"smdistributed": {"dataparallel": ON}}, "pytorch", SMDDP()),
        ({"mpi": {**ON, "processes_per_host": 8}}, "tensorflow", MPI(processes_per_host=8)),
        ({"parameter_server": ON}, "mxnet", ParameterServer()),
        ({"multi_worker_mirrored_strategy": ON}, "tensorflow", MultiWorkerMirrored()),
        (
            {"mpi": {**ON, "processes_per_host": 8}, "smdistributed": smp(partitions=2)},
            "pytorch",
            SMPv1(partitions=2, processes_per_host=8),
        ),
        (
            {"torch_distributed": ON, "smdistributed": smp(hybrid_shard_degree=8)},
            "pytorch",
            SMPv2(hybrid_shard_degree=8),
        ),
        (
            {"mpi": ON, "smdistributed": smp(_match_weights=True)},
            "pytorch",
            SMPv1(extra_parameters={"_match_weights": True}),
        ),
        ({"mpi": ON, "instance_groups": [GPU]}, "pytorch", MPI(instance_group="gpu")),
        ({"mpi": ON, "instance_groups": ["gpu"]}, "pytorch", MPI(instance_group="gpu")),
        # The SDK asks for the group, and tells the toolkit nothing of it.
        ({"torch_distributed": ON, "instance_groups": [GPU]}, "pytorch", TorchDistributed()),
        ({"pytorchddp": ON, "instance_groups": [GPU]}, "huggingface", PyTorchDDP()),
        ({"pytorchddp": ON, "instance_groups": [GPU]}, "pytorch", PyTorchDDP(instance_group="gpu")),
    ],
)
def test_what_the_sdk_takes_is_a_strategy(
    distribution: dict[str, Any], framework: str, strategy: Strategy
) -> None:
    assert from_distribution(distribution, framework=framework) == strategy


@pytest.mark.parametrize(
    ("distribution", "path", "message"),
    [
        ("torch_distributed", "distribution", "expected a mapping"),
        ({"torch_distribute": ON}, "distribution.torch_distribute", "did you mean 'torch_dist"),
        ({1: ON}, "distribution.1", "unknown strategy"),
        ({"mpi": True}, "distribution.mpi", "expected a mapping, got True"),
        ({"mpi": {}}, "distribution.mpi", "lacks enabled"),
        (
            {"mpi": {"enabled": "yes"}},
            "distribution.mpi.enabled",
            "expected true or false, got 'yes'",
        ),
        ({"mpi": {**ON, "procs": 1}}, "distribution.mpi.procs", "unknown option"),
        (
            {"mpi": {**ON, "processes_per_host": 0}},
            "distribution.mpi.processes_per_host",
            "the least is 1",
        ),
        ({"smdistributed": []}, "distribution.smdistributed", "expected a mapping"),
        ({"smdistributed": {"ddp": ON}}, "distribution.smdistributed.ddp", "unknown library"),
        (
            {"smdistributed": {"dataparallel": {}}},
            "distribution.smdistributed.dataparallel",
            "lacks",
        ),
        ({"pytorchxla": ON}, "distribution.pytorchxla", "Training Compiler"),
        ({"parameter_server": ON}, "distribution.parameter_server", "ignores parameter_server"),
        (
            {"mpi": ON, "instance_groups": ["a", "b"]},
            "distribution.instance_groups",
            "names 2 groups",
        ),
        (
            {"mpi": ON, "instance_groups": "gpu"},
            "distribution.instance_groups",
            "a list of one group",
        ),
        (
            {"mpi": ON, "instance_groups": [3]},
            "distribution.instance_groups",
            "expected the name of a group, got 3",
        ),
        ({"instance_groups": ["gpu"]}, "distribution.instance_groups", "leave it out"),
        (
            {"mpi": ON, "smdistributed": smp(partitons=2)},
            "distribution.smdistributed.modelparallel.parameters.partitons",
            "did you mean 'partitions'?",
        ),
        (
            {"mpi": ON, "smdistributed": {"modelparallel": {**ON, "parameters": "smp.json"}}},
            "distribution.smdistributed.modelparallel.parameters",
            "is the path of a file (smp.json)",
        ),
        (
            {"mpi": ON, "smdistributed": smp(auto_partition=False)},
            "distribution.smdistributed.modelparallel.parameters.default_partition",
            "is needed where",
        ),
        (
            {"mpi": ON, "smdistributed": smp(ddp=True, horovod=True)},
            "distribution.smdistributed.modelparallel.parameters.horovod",
            "does not go with ddp",
        ),
        (
            {"mpi": ON, "torch_distributed": ON, "smdistributed": smp(partitions=2)},
            "distribution",
            "at once",
        ),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(distribution: Any, path: str, message: str) -> None:
    with pytest.raises(PipelineError) as caught:
        from_distribution(distribution, framework="pytorch")
    [problem] = caught.value.problems
    assert problem.path == path
    assert message in problem.message


def test_everything_is_said_at_once() -> None:
    wrong = {
        "mpi": {"processes_per_host": "many", "hosts": 2},
        "smdistributed": smp(partitions=0, nonsense=1),
        "horovod": ON,
        "instance_groups": ["a", "b"],
    }
    with pytest.raises(PipelineError) as caught:
        from_distribution(wrong, framework="pytorch")
    assert {problem.path.removeprefix("distribution.") for problem in caught.value.problems} == {
        "mpi",
        "mpi.hosts",
        "mpi.processes_per_host",
        "smdistributed.modelparallel.parameters.partitions",
        "smdistributed.modelparallel.parameters.nonsense",
        "horovod",
        "instance_groups",
    }


@pytest.mark.parametrize("groups", [None, [], ()])
def test_no_group_is_none(groups: object) -> None:
    given = {"mpi": {"enabled": True}, "instance_groups": groups}
    assert from_distribution(given, framework="pytorch") == MPI()
