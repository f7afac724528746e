"""The time of a stage, before anything runs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions
from orchestration.backends.stepfunctions.states import following
from orchestration.errors import PipelineError
from orchestration.expressions import Result
from orchestration.graph import Call, Clock, Guarded, Within, all_steps
from orchestration.graph.codec import decode, encode
from orchestration.local.engine import jsonata as engine
from tests.backends import definitions
from tests.stages.test_approval import pipeline as asking
from tests.stages.test_options import READER, STAGES
from tests.stages.test_options import pipeline as of_stage


def calls(made: Pipeline) -> dict[str, Call]:
    steps = all_steps(made.lower().graph)
    return {step.name: step for step in steps if isinstance(step, Call)}


def left(seconds: int, stage: str) -> str:
    redriven = "$toMillis($states.context.Execution.RedriveTime) / 1000"
    return f"{seconds} - ($millis() / 1000 - $max([${stage}__clock.at, {redriven}]))"


def states(made: Pipeline) -> dict[str, Any]:
    definition = stepfunctions.render(made.lower())
    assert definitions.problems(definition) == []
    return dict(definitions.states(definition))


@pytest.mark.parametrize("name", STAGES)
def test_all_that_a_stage_waits_for_counts_from_one_clock(name: str) -> None:
    made = of_stage(name, timeout_s=7200)
    within = Within(since=Result(f"{name}.clock", "at"), seconds=7200)
    graph = made.lower().graph
    cleanups = [step.cleanup for step in graph.steps if isinstance(step, Guarded)]
    released = {step.name for cleanup in cleanups for step in all_steps(cleanup)}
    own = {n: call for n, call in calls(made).items() if n.startswith(f"{name}.")}
    bounded = {n for n, call in own.items() if call.within == within}
    assert bounded == {n for n, call in own.items() if call.until is not None} - released
    assert bool(released) == (name == "staging")
    [clock] = [step for step in all_steps(graph) if isinstance(step, Clock)]
    assert clock in graph.steps
    assert [decode(encode(step)) for step in graph.steps] == list(graph.steps)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_without_one_has_no_clock(name: str) -> None:
    made = of_stage(name)
    assert not any(isinstance(step, Clock) for step in all_steps(made.lower().graph))
    assert [call.within for call in calls(made).values()] == [None] * len(calls(made))
    assert not any("CheckTime" in state for state in states(made))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, r"train\.timeout_s: is 0; the least is 1"),
        (31_536_001, r"train\.timeout_s: is 31536001; the most is 31536000"),
        ("7200", r"train\.timeout_s: expected a whole number, got '7200'"),
        (1.5, r"train\.timeout_s: expected a whole number, got 1\.5"),
    ],
)
def test_a_wrong_time_is_refused(value: Any, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        of_stage("train", timeout_s=value)


def test_a_stage_that_waits_for_nothing_takes_none() -> None:
    stages = {"tell": {**READER, "timeout_s": 60}}
    data = {"name": "told", "workspace": "s3://b/w", "stages": stages}
    with pytest.raises(PipelineError, match=r"tell\.timeout_s: this stage waits for nothing"):
        Pipeline.parse(data).lower()


def test_an_endpoint_has_an_hour_or_as_long_as_its_stage() -> None:
    waits = {
        seconds: calls(of_stage("deploy", **fields))["deploy.settled"].until
        for seconds, fields in ((3600, {}), (3601, {"timeout_s": 3601}))
    }
    assert {s: until.timeout_s for s, until in waits.items() if until} == {3600: 3600, 3601: 3601}
    short = calls(of_stage("deploy", timeout_s=60))["deploy.settled"].until
    assert short is not None
    assert short.timeout_s == 3600


def test_the_clock_of_a_loop_stands_before_it() -> None:
    made = of_stage("train", timeout_s=60, for_each={"items": ["de", "fr"]})
    assert {type(step).__name__ for step in made.lower().graph.steps} == {"Clock", "ForEach"}


def test_a_stage_that_may_be_skipped_has_its_clock_where_it_is_not() -> None:
    made = of_stage("train", timeout_s=60, when={"equal": [{"parameter": "team"}, "a"]})
    [choice] = made.lower().graph.steps
    assert "train.clock" in {step.name for step in all_steps(made.lower().graph)}
    assert choice.name == "train.when"
    tasks = {task.task_id: task for task in airflow.render(made.lower()).tasks}
    assert tasks["train.clock"].upstream == ("train.when",)


@pytest.mark.parametrize(("name", "first"), [("train", "train.job"), ("staging", "staging.create")])
def test_airflow_reads_the_clock_in_a_task_of_its_own(name: str, first: str) -> None:
    tasks = {
        task.task_id: task for task in airflow.render(of_stage(name, timeout_s=60).lower()).tasks
    }
    assert tasks[f"{name}.clock"].upstream == ("inputs",)
    assert tasks[first].upstream == (f"{name}.clock",)


def test_a_state_machine_looks_at_the_time_before_every_try() -> None:
    made = states(of_stage("train", timeout_s=7200, retry={"attempts": 3}))
    assert made["train-clock"]["Next"] == "train-job-CheckTime"
    check = made["train-job-CheckTime"]
    assert (check["Choices"][0]["Condition"], check["Default"]) == (
        f"{{% {left(7200, 'train')} <= 0 %}}",
        "train-job",
    )
    seconds = made["train-job"]["TimeoutSeconds"]
    assert seconds == f"{{% $max([1, $ceil($min([90000, {left(7200, 'train')}]))]) %}}"
    again = [rule["Next"] for rule in made["train-job-Status"]["Choices"] if "Number" in str(rule)]
    assert set(again) == {"train-job-CheckTime"}


def test_a_state_machine_looks_at_the_time_before_every_fallback_and_round() -> None:
    cluster = {
        "instance_type": "ml.p5.48xlarge",
        "fallbacks": [{"instance_type": "ml.p4d.24xlarge"}],
    }
    made = states(of_stage("train", timeout_s=7200, cluster=cluster, wait_for_capacity_h=5))
    for request, prefix in (("train-job", "train-job-"), ("train-job-Fallback1",) * 2):
        leading = {name for name, state in made.items() if request in following(state)}
        # One that was throttled is sent again without a look.
        assert leading == {f"{prefix}CheckTime", f"{prefix}WaitToRetry"}


def test_a_person_is_waited_for_no_longer_than_the_stage_may_take() -> None:
    made = states(asking(answer_within_h=30, timeout_s=600))
    seconds = made["ok-answer-Wait"]["TimeoutSeconds"]
    assert seconds == f"{{% $max([1, $ceil($min([3600, {left(600, 'ok')}]))]) %}}"


@pytest.mark.parametrize(("redriven_s", "seconds"), [(None, 20), (90, 20), (5, 55)])
def test_a_redriven_execution_has_the_time_again(redriven_s: int | None, seconds: int) -> None:
    text = left(60, "train")
    now = time.time()
    execution = {}
    if redriven_s is not None:
        redriven = datetime.fromtimestamp(now - redriven_s, tz=UTC)
        execution["RedriveTime"] = redriven.isoformat(timespec="milliseconds")
    states = {"context": {"Execution": execution}}
    bindings = {"train__clock": {"at": now - 40}, "states": states}
    rest: Any = engine.evaluate(text, bindings)
    assert rest == pytest.approx(seconds, abs=1)
