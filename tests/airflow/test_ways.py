"""Each element of a loop goes one way of a choice, where it has several tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.expressions import Compare, Item, join, run_id
from orchestration.graph import Call, Choose, ForEach, Graph, Workflow
from orchestration.local.airflow import LocalAirflow
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

pytestmark = pytest.mark.xdist_group("airflow")


def job(name: str) -> Call:
    return training(f"loop.{name}", job=join(f"{name}-", Item(), "-", run_id()))


def choosing() -> Workflow:
    choice = Choose(
        name="loop.choose",
        condition=Compare("eq", Item(), 2),
        then=Graph((job("even"), replace(job("more"), after=("loop.even",)))),
        otherwise=Graph((job("odd"),)),
        after=("loop.first",),
    )
    last = replace(job("last"), after=("loop.choose",))
    loop = ForEach(
        name="loop.each",
        items=[1, 2],
        # An element with a guard has several tasks.
        body=Graph((file_system("loop.fs", Graph((job("first"), choice, last))),)),
        max_concurrency=2,
        collect={},
    )
    return workflow(loop, name="choosing")


def test_each_element_goes_one_way(airflow: LocalAirflow, aws: ScriptedAws) -> None:
    ended = airflow.run(choosing(), aws=aws, run_id="ways")
    assert ended.state == "success", ended.log
    names = [request["TrainingJobName"] for request in aws.of("CreateTrainingJob")]
    jobs = sorted(name.rpartition("-")[0] for name in names)
    assert jobs == ["even-2", "first-1", "first-2", "last-1", "last-2", "more-2", "odd-1"]
