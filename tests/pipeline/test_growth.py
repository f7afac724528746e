"""Work on a pipeline grows as the pipeline does, counted in lines that the interpreter runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import pytest

from orchestration.backends import airflow
from orchestration.graph.composition import compose
from orchestration.graph.ordering import layered
from orchestration.pipeline import Pipeline
from tests.pipeline.building import Data, evaluation, job, lustre, pipeline, reader

LENGTHS = (10, 20, 40)


def lines(action: Callable[[], object]) -> int:
    """How many lines an action runs, each again for each element that it goes through.

    A line has so many instructions at most, which take three times as long to count.
    """
    count = 0

    def trace(_frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    action()  # What is read or compiled once is not part of it.
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def growth(action: Callable[[int], Callable[[], object]]) -> float:
    """How much more the second doubling of a length costs than the first: 2 where it is linear.

    Costs that every length has fall out of it.
    """
    first, second, third = (lines(action(length)) for length in LENGTHS)
    return (third - second) / (second - first)


def jobs(length: int) -> list[Data]:
    stages: list[Data] = [job("stage0")]
    while len(stages) < length:
        stages.append(job(f"stage{len(stages)}", after=[f"stage{len(stages) - 1}"]))
    return stages


def evaluations(length: int) -> list[Data]:
    stages: list[Data] = [job("train")]
    while len(stages) < length:
        name = f"stage{len(stages)}"
        stages.append(evaluation(name, "train", "fail") | {"after": [stages[-1]["name"]]})
    return stages


def file_systems(length: int) -> list[Data]:
    stages: list[Data] = []
    while len(stages) < length:
        system, train = f"system{len(stages)}", f"train{len(stages)}"
        after = {"after": [stages[-1]["name"]]} if stages else {}
        stages += [lustre(system) | after, reader(train, system)]
    return stages


@pytest.mark.parametrize("chain", [jobs, evaluations, file_systems])
def test_lowering_grows_with_the_stages(chain: Callable[[int], list[Data]]) -> None:
    def lowering(length: int) -> Callable[[], Pipeline]:
        stages = chain(length)
        return lambda: pipeline(*stages)

    assert growth(lowering) < 2.2


@pytest.mark.parametrize("chain", [jobs, evaluations, file_systems])
def test_rendering_for_airflow_grows_with_the_stages(chain: Callable[[int], list[Data]]) -> None:
    def rendering(length: int) -> Callable[[], object]:
        workflow = pipeline(*chain(length)).lower()
        return lambda: airflow.render(workflow)

    assert growth(rendering) < 2.2


def in_chain(length: int) -> Mapping[str, frozenset[str]]:
    """Steps that each wait for the one before, told from the last to the first."""
    names = [f"step{number}" for number in range(length)]
    before = dict(zip(names, [frozenset[str](), *(frozenset([n]) for n in names)], strict=False))
    return {name: before[name] for name in reversed(names)}


@pytest.mark.parametrize(
    "order", [layered, lambda steps: compose(list(steps), steps)], ids=["layered", "compose"]
)
def test_ordering_grows_with_the_steps(order: Callable[[Any], object]) -> None:
    assert growth(lambda length: lambda: order(in_chain(length))) < 2.2
