"""Bounds are below every time, and memory grows with the micro-batch: the search relies on both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.catalog import instances
from orchestration.planning.cost.estimates import memory_need, memory_room, step_seconds
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.configuration import Configuration, Offload, Recompute
from orchestration.planning.search.candidates import Cluster
from orchestration.planning.search.layouts import Kin, kins, layouts
from orchestration.planning.search.places.alike import Places
from orchestration.planning.search.places.memory import micro_batches
from orchestration.planning.search.places.place import Place
from orchestration.planning.search.space import Space
from orchestration.planning.search.work import Shared
from tests.planning.search.questions import GPT2, task


@given(st.integers(1, 5000))
def test_micro_batches_divide_and_ascend(samples: int) -> None:
    sizes = list(micro_batches(samples))
    assert sizes[0] == 1
    assert sizes == sorted(set(sizes))
    assert all(samples % size == 0 for size in sizes)


def clusters(*names: tuple[str, int], **change: Any) -> list[tuple[Cluster, Kin]]:
    """Return the layouts of clusters, those together that compute alike."""
    return [
        (cluster, kin)
        for name, count in names
        for cluster in [Cluster(task(**change), Space(), instances()[name], count)]
        for kin in kins(layouts(cluster.task, cluster.instance, count))
    ]


EXPERTS = replace(GPT2, experts=8, active_experts=2)
CONFIGURATIONS = [
    *clusters(
        ("ml.g5.12xlarge", 2), ("ml.p4d.24xlarge", 1), ("ml.p3.16xlarge", 1), precision="fp16"
    ),
    *clusters(("ml.p4d.24xlarge", 2), model=EXPERTS),
    *clusters(("ml.p4d.24xlarge", 1), model=EXPERTS, engine="hf trainer"),
    *clusters(("ml.p4d.24xlarge", 1), kernels="fused"),
    *clusters(("ml.trn1.32xlarge", 1)),
]
every_layout = pytest.mark.parametrize(
    ("cluster", "kin"),
    CONFIGURATIONS,
    ids=lambda value: str(value.first) if isinstance(value, Kin) else value.instance.name,
)


def works(
    cluster: Cluster, kin: Kin
) -> Iterator[tuple[Places, Place, tuple[int, int, Recompute, Offload]]]:
    """Return all work for each of some layouts."""
    samples = 256 // cluster.replicas(kin.first)
    places = cluster.places(kin)
    for place, micro in product(places.each, micro_batches(samples)):
        for recompute, offload in product(cluster.recomputes, place.offloads):
            yield places, place, (micro, samples // micro, recompute, offload)


def working(place: Place, micro: int, count: int, *kept: Any) -> Configuration:
    """Return the configuration of some work."""
    return place.working(micro * count * place.configuration.data, micro, *kept)


@every_layout
def test_memory_grows_with_the_micro_batch(cluster: Cluster, kin: Kin) -> None:
    samples = 256 // cluster.replicas(kin.first)
    for layout, recompute in product(kin.layouts, cluster.recomputes):
        needs = [
            memory_need(cluster.configuration(layout, 256, micro, recompute))
            for micro in micro_batches(samples)
        ]
        assert needs == sorted(needs)


@every_layout
def test_no_step_is_faster_than_its_bounds(cluster: Cluster, kin: Kin) -> None:
    for places, place, (micro, count, recompute, offload) in works(cluster, kin):
        seconds = step_seconds(working(place, micro, count, recompute, offload))
        bounds = cluster.bounds.micro_s(micro, kin.first.degrees)
        assert count * bounds[cluster.recomputes.index(recompute)] <= seconds
        least = places.least_sharded_s(micro, recompute)
        assert places.least_s(micro, recompute) <= least
        assert count * least <= seconds


@every_layout
def test_a_larger_micro_batch_takes_no_more_time_for_each_sample(
    cluster: Cluster, kin: Kin
) -> None:
    sizes = micro_batches(256 // cluster.replicas(kin.first))
    for kind in range(len(cluster.recomputes)):
        times = [cluster.bounds.micro_s(micro, kin.first.degrees)[kind] / micro for micro in sizes]
        assert times == sorted(times, reverse=True)


@every_layout
def test_no_layout_needs_less_memory_than_those_like_it(cluster: Cluster, kin: Kin) -> None:
    for places, place, (micro, count, recompute, offload) in works(cluster, kin):
        c = working(place, micro, count, recompute, offload)
        need = places.need(place, micro, count, recompute, offload)
        assert need == memory_need(c)
        assert places.least_need(micro, count, recompute) <= need
        assert places.least_need(1, 1, "full") <= need
        several = places.least_need(micro, 2, recompute)
        assert places.least_need(micro, 1, recompute) <= several


@every_layout
def test_parts_that_layouts_share_make_up_the_estimates(cluster: Cluster, kin: Kin) -> None:
    for places, place, (micro, count, recompute, offload) in works(cluster, kin):
        c = working(place, micro, count, recompute, offload)
        least = place.least_step_s(places.replica_time(micro, count, recompute))
        assert least == step_seconds(c) or (offload != "none" and least < step_seconds(c))


@pytest.mark.parametrize("change", [{}, {"precision": "fp32"}, {"engine": "hf trainer"}], ids=str)
def test_what_clusters_share_is_the_same_on_each(change: dict[str, Any]) -> None:
    wanted = task(EXPERTS, **change)
    shared = Shared(wanted)
    for name, count in [("ml.p4d.24xlarge", 2), ("ml.p4d.24xlarge", 4), ("ml.p5.48xlarge", 2)]:
        cluster = Cluster(wanted, Space(), instances()[name], count, shared)
        for kin in shared.kins_of(cluster.instance, count):
            for places, place, (micro, times, recompute, offload) in works(cluster, kin):
                c = working(place, micro, times, recompute, offload)
                assert places.need(place, micro, times, recompute, offload) == memory_need(c)
                least = place.least_step_s(places.replica_time(micro, times, recompute))
                assert least == step_seconds(c) or ("optimizer" in place.offloads)


@every_layout
def test_the_estimates_are_the_predictions(cluster: Cluster, kin: Kin) -> None:
    c = cluster.configuration(kin.first, 256, 1, "full")
    p = predict(c)
    assert p.memory.need * p.memory_high_gib / p.memory_gib == pytest.approx(memory_need(c))
    assert p.step_time_s == pytest.approx(step_seconds(c))
    assert p.fits or memory_need(c) > memory_room(c)
