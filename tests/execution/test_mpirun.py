"""mpirun as the toolkit starts it, over SSH between hosts, from our requests to the right sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import MPI, SMDDP, Cluster, Horovod, InstanceGroup, PyTorchDDP, SMPv1
from orchestration.local import EmbeddedAws
from orchestration.local.sagemaker.hosts import isolation
from tests.execution.launched import Launched, hosts, launch

LACKING = isolation.missing(isolation.Need("mpirun", over_mpirun=True))
P4D = "ml.p4d.24xlarge"

pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.slow,
    pytest.mark.skipif(LACKING is not None, reason=str(LACKING)),
]


def assert_every_rank_once(done: Launched, names: list[str], *, each: int = 2) -> None:
    world = each * len(names)
    assert done.column("launcher") == ["mpirun"] * world, done.log
    assert done.column("rank") == list(range(world))
    assert done.column("local_rank") == list(range(each)) * len(names)
    assert done.column("world") == [world] * world
    assert done.column("host") == [name for name in names for _ in range(each)]
    total = float(sum(range(1, world + 1)))
    assert done.column("totals") == [{"gloo": total, "mpi": total}] * world


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_mpirun_starts_every_rank_once(aws: EmbeddedAws, tmp_path: Path, count: int) -> None:
    strategy = MPI(processes_per_host=2, custom_mpi_options="-x COLOUR=red --NCCL_DEBUG WARN")
    done = launch(aws, tmp_path, cluster=hosts(count), strategy=strategy)
    names = ["algo-1", "algo-2"][:count]
    assert_every_rank_once(done, names)
    assert done.column("hosts") == [names] * 2 * count
    assert set(done.column("colour")) == {"red"}
    # The toolkit passes on the first host's variables, so a rank elsewhere must not trust them.
    assert set(done.column("sm_host")) == {"algo-1"}
    assert done.column("runtime") == [
        ["mpirun", rank, 2 * count, names[rank // 2]] for rank in range(2 * count)
    ]


@pytest.mark.thorough
def test_horovod_is_one_process_per_accelerator(aws: EmbeddedAws, tmp_path: Path) -> None:
    done = launch(aws, tmp_path, cluster=hosts(2), strategy=Horovod())
    assert_every_rank_once(done, ["algo-1", "algo-2"])


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(SMDDP(), id="smddp"),
        pytest.param(PyTorchDDP(), id="pytorchddp", marks=pytest.mark.thorough),
    ],
)
def test_data_parallelism_goes_through_smddprun(
    aws: EmbeddedAws, tmp_path: Path, strategy: Any
) -> None:
    done = launch(aws, tmp_path, cluster=hosts(2, P4D), strategy=strategy)
    assert_every_rank_once(done, ["algo-1", "algo-2"])
    assert set(done.column("program")) == {"smddprun"}
    assert {one["runtime"][0] for one in done.seen} == {"smddp"}


@pytest.mark.thorough
def test_smp_v1_gives_its_parameters_to_every_rank(aws: EmbeddedAws, tmp_path: Path) -> None:
    strategy = SMPv1(processes_per_host=2, pipeline_parallel_degree=2, microbatches=4, ddp=True)
    done = launch(aws, tmp_path, cluster=hosts(1, P4D), strategy=strategy)
    assert_every_rank_once(done, ["algo-1"])
    given = {"pipeline_parallel_degree": 2, "microbatches": 4, "ddp": True}
    assert done.column("mp") == [given] * 2
    # No smddprun: the library for data parallelism is off.
    assert set(done.column("program")) == {""}


@pytest.mark.thorough
def test_only_the_named_group_runs_mpirun(aws: EmbeddedAws, tmp_path: Path) -> None:
    groups = (
        InstanceGroup(name="data", instance_type="ml.c5.xlarge", instance_count=1),
        InstanceGroup(name="gpus", instance_type=P4D, instance_count=2),
    )
    done = launch(
        aws,
        tmp_path,
        cluster=Cluster(groups=groups),
        strategy=MPI(processes_per_host=2, instance_group="gpus"),
        environment={"STANDS_BY": "data"},
    )
    apart, *together = done.seen
    assert (apart["group"], apart["launcher"], apart["host"]) == ("data", "plain", "algo-1")
    assert_every_rank_once(Launched(done.job, done.request, together), ["algo-2", "algo-3"])
    assert {one["group"] for one in together} == {"gpus"}
    config = apart["resources"]
    assert (config["current_group_name"], config["current_host"]) == ("data", "algo-1")
    assert config["current_instance_type"] == "ml.c5.xlarge"
    assert config["hosts"] == ["algo-1", "algo-2", "algo-3"]
    assert config["instance_groups"] == [
        {
            "instance_group_name": "data",
            "instance_type": "ml.c5.xlarge",
            "hosts": ["algo-1"],
        },
        {"instance_group_name": "gpus", "instance_type": P4D, "hosts": ["algo-2", "algo-3"]},
    ]
