"""Plain scripts and torchrun, from our requests to the right sum."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration import SMDDP, Cluster, InstanceGroup, NoStrategy, SMPv2, TorchDistributed
from orchestration.local import EmbeddedAws
from tests.execution.launched import hosts, launch

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_plain_starts_one_process_on_every_host(
    aws: EmbeddedAws, tmp_path: Path, count: int
) -> None:
    done = launch(aws, tmp_path, cluster=hosts(count), strategy=NoStrategy())
    assert done.column("launcher") == ["plain"] * count, done.log
    assert done.column("rank") == list(range(count))
    assert done.column("sm_host") == done.seen[0]["hosts"]
    assert len(done.seen[0]["hosts"]) == count
    assert done.column("totals") == [{"gloo": sum(range(1, count + 1))}] * count


@pytest.mark.parametrize(
    ("count", "processes", "each"),
    [
        (2, 1, 1),  # and not one per accelerator, of which there are two
        pytest.param(1, None, 2, marks=pytest.mark.thorough),
        pytest.param(1, 3, 3, marks=pytest.mark.thorough),
        pytest.param(2, None, 2, marks=pytest.mark.thorough),
    ],
)
def test_torchrun_starts_every_rank_once(
    aws: EmbeddedAws, tmp_path: Path, count: int, processes: int | None, each: int
) -> None:
    strategy = TorchDistributed(processes_per_host=processes)
    done = launch(aws, tmp_path, cluster=hosts(count), strategy=strategy)
    world = count * each
    assert done.column("launcher") == ["torchrun"] * world, done.log
    assert done.column("rank") == list(range(world))
    assert done.column("local_rank") == list(range(each)) * count
    assert done.column("world") == [world] * world
    assert done.column("sm_host") == [name for name in done.seen[0]["hosts"] for _ in range(each)]
    assert done.column("totals") == [{"gloo": sum(range(1, world + 1))}] * world


def test_smp_v2_tells_its_parameters_to_what_torchrun_starts(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    strategy = SMPv2(hybrid_shard_degree=2, sm_activation_offloading=True)
    done = launch(aws, tmp_path, cluster=hosts(1, "ml.p4d.24xlarge"), strategy=strategy)
    assert done.column("launcher") == ["torchrun"] * 2, done.log
    given = {"hybrid_shard_degree": 2, "sm_activation_offloading": True}
    assert done.column("mp") == [given] * 2
    assert done.column("totals") == [{"gloo": 3.0}] * 2
    # The toolkit gives it to the script as an argument, too: a parser has to know it.
    encoded = "hybrid_shard_degree=2,sm_activation_offloading=True"
    assert done.seen[0]["arguments"] == ["--mp_parameters", encoded]


@pytest.mark.thorough
def test_smddp_over_torchrun(aws: EmbeddedAws, tmp_path: Path) -> None:
    cluster = hosts(1, "ml.p4d.24xlarge")
    done = launch(aws, tmp_path, cluster=cluster, strategy=SMDDP(launcher="torchrun"))
    assert done.column("launcher") == ["torchrun"] * 2, done.log
    assert done.column("totals") == [{"gloo": 3.0}] * 2


def test_each_group_of_a_cluster_runs_torchrun_by_itself(aws: EmbeddedAws, tmp_path: Path) -> None:
    groups = (
        InstanceGroup(name="large", instance_type="ml.g5.12xlarge", instance_count=1),
        InstanceGroup(name="small", instance_type="ml.c5.xlarge", instance_count=2),
    )
    done = launch(aws, tmp_path, cluster=Cluster(groups=groups), strategy=TorchDistributed())
    assert done.column("launcher") == ["torchrun"] * 4, done.log
    assert done.column("group") == ["large", "large", "small", "small"]
    assert done.column("rank") == [0, 1, 0, 1]
    assert done.column("world") == [2] * 4
    names = done.seen[0]["hosts"]
    assert done.column("sm_host") == [names[0], *names]
    assert done.column("totals") == [{"gloo": 3.0}] * 4
