"""Bounds are below every time, and memory grows with the micro-batch: the search relies on both."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.catalog import instances
from orchestration.planning.cost.estimates import (
    computing_seconds,
    device_seconds,
    held,
    joint_need,
    memory_need,
    memory_room,
    micro_seconds,
    passing,
    replica_seconds,
    step_seconds,
)
from orchestration.planning.cost.prediction import predict
from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Layout, layouts
from orchestration.planning.search.places.memory import micro_batches
from orchestration.planning.search.space import Space
from tests.planning.search.questions import task


@given(st.integers(1, 5000))
def test_micro_batches_divide_and_ascend(samples: int) -> None:
    sizes = list(micro_batches(samples))
    assert sizes[0] == 1
    assert sizes == sorted(set(sizes))
    assert all(samples % size == 0 for size in sizes)


CONFIGURATIONS = [
    (cluster, layout)
    for name, count in [("ml.g5.12xlarge", 2), ("ml.p4d.24xlarge", 1), ("ml.p3.16xlarge", 1)]
    for cluster in [Cluster(task(precision="fp16"), Space(), instances()[name], count)]
    for layout in layouts(task(precision="fp16"), instances()[name], count)
]


@pytest.mark.parametrize(
    ("cluster", "layout"),
    CONFIGURATIONS,
    ids=lambda value: str(value) if isinstance(value, Layout) else value.instance.name,
)
def test_memory_grows_with_the_micro_batch(cluster: Cluster, layout: Layout) -> None:
    replicas = cluster.replicas(layout)
    for recompute in cluster.recomputes:
        needs = [
            memory_need(cluster.configuration(layout, 256, micro, recompute, "none"))
            for micro in micro_batches(256 // replicas)
        ]
        assert needs == sorted(needs)


@pytest.mark.parametrize(
    ("cluster", "layout"),
    CONFIGURATIONS,
    ids=lambda value: str(value) if isinstance(value, Layout) else value.instance.name,
)
def test_no_step_is_faster_than_its_computing(cluster: Cluster, layout: Layout) -> None:
    works = cluster.works([layout])
    for work in works:
        c = cluster.configuration(layout, work.batch, work.micro_batch, work.recompute, "none")
        assert cluster.task.steps(work.batch) * step_seconds(c) >= work.bound * (1 - 1e-9)
        [computing] = computing_seconds(c, device_seconds(c), [c.recompute])
        assert step_seconds(c) >= computing * (1 - 1e-9)


@pytest.mark.parametrize(
    ("cluster", "layout"),
    CONFIGURATIONS,
    ids=lambda value: str(value) if isinstance(value, Layout) else value.instance.name,
)
def test_parts_that_layouts_share_make_up_the_estimates(cluster: Cluster, layout: Layout) -> None:
    place = cluster.place(layout)
    for work, offload in product(cluster.works([layout]), place.offloads):
        c = place.working(work.batch, work.micro_batch, work.recompute, offload)
        least = place.least_step_s(replica_seconds(c, micro_seconds(c, device_seconds(c))))
        assert least == step_seconds(c) or (offload != "none" and least < step_seconds(c))
        assert joint_need(c, held(c), passing(c)) == memory_need(c)
        alone = place.working(place.configuration.data, 1, "full", offload)
        assert memory_need(alone) <= memory_need(c)


@pytest.mark.parametrize(
    ("cluster", "layout"),
    CONFIGURATIONS,
    ids=lambda value: str(value) if isinstance(value, Layout) else value.instance.name,
)
def test_the_estimates_are_the_predictions(cluster: Cluster, layout: Layout) -> None:
    c = cluster.configuration(layout, 256, 1, "full", "none")
    p = predict(c)
    assert p.memory.need * p.memory_high_gib / p.memory_gib == pytest.approx(memory_need(c))
    assert p.step_time_s == pytest.approx(step_seconds(c))
    assert p.fits or memory_need(c) > memory_room(c)
