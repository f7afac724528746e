"""The events that a run may write are counted while rendering, and never more than AWS allows."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration import DataStaging, Pipeline, UnsupportedError
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.events import (
    MOST_EVENTS,
    RESERVE,
    Count,
    counted,
    exceeded,
)
from orchestration.graph import Call, ForEach, Graph, Workflow
from tests.airflow.workflows import falling_back
from tests.backends import definitions
from tests.backends.test_stepfunctions import training
from tests.backends.workflows import put, workflow


def stagings(number: int) -> Workflow:
    stages = tuple(
        DataStaging(name=f"copy{i}", source=f"s3://source/{i}") for i in range(1, number + 1)
    )
    return Pipeline(name="copies", workspace="s3://bucket", role=ROLE, stages=stages).lower()


ROLE = "arn:aws:iam::111122223333:role/train"


def test_a_staged_object_writes_18_events() -> None:
    made = stagings(1)
    count = counted(stepfunctions.render(made), made)
    assert count.loops == {"copy1.copy": (500, 4 + 500 * 18)}


def test_a_task_writes_5_events_between_the_start_and_the_end() -> None:
    made = workflow(put("a.one"), put("a.two"))
    fewer = counted(stepfunctions.render(workflow(put("a.one"))), workflow(put("a.one")))
    # The two stand side by side, which takes a Parallel state of two branches.
    assert counted(stepfunctions.render(made), made).once > fewer.once + 5
    after = workflow(put("a.one"), put("a.two", after=("a.one",)))
    assert counted(stepfunctions.render(after), after).once == fewer.once + 5


def test_what_may_write_too_many_events_is_refused_with_the_loop() -> None:
    stepfunctions.render(stagings(2))
    with pytest.raises(UnsupportedError) as refused:
        stepfunctions.render(stagings(3))
    [problem] = refused.value.problems
    assert problem.path == "copy1.copy"
    assert "ends an execution at 25000" in problem.message
    assert "up to 500 elements; let it hold fewer, divide the pipeline into two" in problem.message


def test_long_jobs_are_polled_less_often_where_there_are_several() -> None:
    jobs = [training(f"train.job{i}", RemoteDebugConfig={}) for i in range(3)]
    waits = [replace(job.until, interval_s=30, timeout_s=864_000) for job in jobs if job.until]
    made = workflow(*(replace(job, until=wait) for job, wait in zip(jobs, waits, strict=True)))
    definition = stepfunctions.render(made)
    count = counted(definition, made)
    assert count.total() > MOST_EVENTS
    assert (
        count.total(count.most_polls) <= MOST_EVENTS - RESERVE < count.total(count.most_polls + 1)
    )
    status = definitions.states(definition)["train-job0-Status"]
    assert f"$train__job0__Polls >= {count.most_polls}" in str(status)


@given(
    st.integers(0, MOST_EVENTS),
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 2000)), max_size=5),
)
def test_polls_are_as_many_as_fit(once: int, polls: list[tuple[int, int]]) -> None:
    count = Count(once, {}, polls)
    most = count.most_polls
    assert 2 <= most <= 2000
    assert count.total(most) <= MOST_EVENTS - RESERVE or most == 2
    assert most == 2000 or count.total(most + 1) > MOST_EVENTS - RESERVE


def test_rounds_of_waiting_for_capacity_are_counted() -> None:
    once, again = (
        counted(stepfunctions.render(made), made)
        for made in (workflow(waiting(0)), workflow(waiting(86_400)))
    )
    # Of each round: 15 events for a request, and 6 between two rounds.
    assert again.once - once.once == 96 * (15 * 3 + 6)
    assert not again.polls[1:]


def test_polls_of_waiting_jobs_leave_a_long_job_enough_of_them() -> None:
    call = waiting(604_800, RemoteDebugConfig={})
    assert call.until is not None
    made = workflow(replace(call, until=replace(call.until, timeout_s=864_000)))
    definition = stepfunctions.render(made)
    most = counted(definition, made).most_polls
    assert most > 200
    wait = definitions.states(definition)["train-job-Wait"]
    assert str(ceil(604_800 / 1000)) in str(wait["Seconds"])


def test_what_is_refused_is_said_to_be_what_repeats_itself_most() -> None:
    made = stagings(1)
    count = counted(stepfunctions.render(made), made)
    assert not list(exceeded(count))
    [pages] = exceeded(replace(count, once=30_000, pages={"copy1.list": 20_000}))
    assert pages.path == "copy1.list"
    assert "; 20000 of them are for the pages of this listing; divide the" in pages.message
    [rounds] = exceeded(replace(count, once=30_000, rounds={"train.job": 20_000}))
    assert rounds.path == "train.job"
    assert "the rounds in which this waits for capacity; wait for fewer" in rounds.message


def test_a_loop_multiplies_the_rounds_of_its_jobs() -> None:
    each = ForEach(
        name="train.each",
        items=["a", "b"],
        body=Graph((waiting(9_000),)),
        collect={},
        max_concurrency=1,
    )
    made = workflow(each)
    assert counted(stepfunctions.render(made), made).rounds == {"train.job": 2 * 10 * 51}


def waiting(wait_s: float, **fields: Any) -> Call:
    call = falling_back("train.job", **fields)
    assert call.fallback is not None
    pause_s = max(900, wait_s / 96)
    return replace(call, fallback=replace(call.fallback, wait_s=wait_s, pause_s=pause_s))


def test_what_follows_the_end_of_a_run_is_counted() -> None:
    stage = DataStaging(name="copy", source="s3://source/1")
    late = stage.model_copy(update={"name": "late"})
    made = Pipeline(
        name="copies", workspace="s3://bucket", role=ROLE, stages=[stage], always=[late]
    ).lower()
    count = counted(stepfunctions.render(made), made)
    assert count.loops["late.copy"] == count.loops["copy.copy"]
    alone = stagings(1)
    assert count.once > 2 * counted(stepfunctions.render(alone), alone).once - 2
