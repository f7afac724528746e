"""Processes, and how many of them hold one copy of the model."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestration.strategies import (
    MPI,
    SMDDP,
    Horovod,
    MultiWorkerMirrored,
    NoStrategy,
    ParameterServer,
    PyTorchDDP,
    SMPv1,
    SMPv2,
    Strategy,
    TorchDistributed,
    Use,
    findings,
    image_distribution,
    model_parallel,
    processes_per_host,
    replicas,
    world,
)

DEGREE = st.one_of(st.none(), st.integers(1, 16))
PER_DEVICE: list[Strategy] = [
    TorchDistributed(),
    SMDDP(),
    PyTorchDDP(),
    SMPv1(),
    SMPv2(),
    MPI(),
    Horovod(),
]
ONE: list[Strategy] = [ParameterServer(), MultiWorkerMirrored(), NoStrategy()]


@pytest.mark.parametrize(
    ("strategy", "devices", "processes"),
    [
        (TorchDistributed(), 8, 16),
        (TorchDistributed(processes_per_host=3), None, 6),
        (TorchDistributed(), None, None),
        (TorchDistributed(), 0, 2),
        (SMDDP(), 8, 16),
        (MPI(processes_per_host=4), 8, 8),
        (MPI(), 8, 16),
        (SMPv1(processes_per_host=4), 8, 8),
        (NoStrategy(), 8, 2),
    ],
)
def test_world_size(strategy: Strategy, devices: int | None, processes: int | None) -> None:
    assert world(strategy, 2, devices) == processes


@given(
    st.sampled_from(PER_DEVICE + ONE), st.integers(1, 64), st.one_of(st.none(), st.integers(0, 64))
)
def test_a_world_is_so_many_hosts(strategy: Strategy, hosts: int, devices: int | None) -> None:
    one = processes_per_host(strategy, devices)
    assert world(strategy, hosts, devices) == (None if one is None else hosts * one)
    assert (one is None) == (strategy in PER_DEVICE and devices is None)
    assert one is None or one >= 1


@given(DEGREE, DEGREE, st.integers(1, 8), st.integers(1, 16))
def test_replicas_make_up_the_world(
    pipeline: int | None, tensor: int | None, hosts: int, devices: int
) -> None:
    smp = SMPv1(pipeline_parallel_degree=pipeline, tensor_parallel_degree=tensor, ddp=True)
    size, copies = world(smp, hosts, devices), replicas(smp, hosts, devices)
    assert size is not None
    assert copies is not None
    assert 0 <= size - copies * model_parallel(smp) < model_parallel(smp)
    assert model_parallel(smp) == (pipeline or 1) * (tensor or 1)


@given(st.integers(1, 8), DEGREE, DEGREE, DEGREE)
def test_degrees_that_divide_the_world_are_never_refused_and_others_always(
    hosts: int, tensor: int | None, sharded: int | None, expert: int | None
) -> None:
    smp = SMPv2(
        tensor_parallel_degree=tensor, hybrid_shard_degree=sharded, expert_parallel_degree=expert
    )
    use = Use(instance_types=("ml.p4d.24xlarge",), instance_count=hosts)
    fits = 8 * hosts % ((tensor or 1) * (sharded or 1)) == 0 and 8 * hosts % (expert or 1) == 0
    assert any(found.certain for found in findings(smp, use)) != fits


@given(st.integers(1, 4), st.integers(1, 8), st.integers(1, 16))
def test_sharded_data_parallelism_divides_the_copies(hosts: int, tensor: int, sharded: int) -> None:
    assume(8 * hosts % tensor == 0)
    smp = SMPv1(tensor_parallel_degree=tensor, sharded_data_parallel_degree=sharded, ddp=True)
    use = Use(instance_types=("ml.p4d.24xlarge",), instance_count=hosts)
    fits = (8 * hosts // tensor) % sharded == 0
    assert any(found.certain for found in findings(smp, use)) != fits


def test_context_parallel_ranks_share_a_copy_and_expert_parallel_ones_do_not() -> None:
    smp = SMPv2(
        hybrid_shard_degree=8,
        tensor_parallel_degree=2,
        context_parallel_degree=4,
        expert_parallel_degree=8,
    )
    assert model_parallel(smp) == 8
    assert replicas(smp, 4, 8) == 4


def test_partitions_are_the_older_name_of_the_pipeline() -> None:
    assert model_parallel(SMPv1(partitions=4)) == 4


@pytest.mark.parametrize("strategy", [*PER_DEVICE, *ONE], ids=lambda strategy: strategy.kind)
def test_libraries_with_images_of_their_own_are_named(strategy: Strategy) -> None:
    expected = {"smddp": "smddp", "pytorchddp": "smddp", "smp_v2": "smp"}
    assert image_distribution(strategy) == expected.get(strategy.kind)


def test_a_copy_that_is_larger_than_the_cluster_can_not_be() -> None:
    smp = SMPv2(tensor_parallel_degree=2, context_parallel_degree=4)
    small = Use(clusters=(("ml.g5.12xlarge", 1),), instance_types=("ml.g5.12xlarge",))
    large = Use(clusters=(("ml.p4d.24xlarge", 1),), instance_types=("ml.p4d.24xlarge",))
    [found] = (one for one in findings(smp, small) if one.certain)
    assert found.path == "strategy.context_parallel_degree"
    assert "takes 8 processes" in found.message
    assert not any(one.certain for one in findings(smp, large))
