"""The specification of a DAG is a function of the workflow, and says what it can't do."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from orchestration.backends.airflow import TaskSpec, render
from orchestration.backends.airflow.calls import decode_call, encode_call
from orchestration.errors import UnsupportedError
from orchestration.expressions import Compare, Item, Result
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Parallel,
    Recovery,
    Step,
    Wait,
    Workflow,
)
from tests.airflow.workflows import falling_back, file_system, training, workflow


def tasks(*steps: Step) -> dict[str, TaskSpec]:
    return {task.task_id: task for task in render(workflow(*steps)).tasks}


def loop(name: str, *body: Step) -> ForEach:
    return ForEach(name=name, items=[1], body=Graph(body), collect={"n": Item()}, max_concurrency=3)


def test_steps_stand_between_the_inputs_and_the_outputs() -> None:
    made = tasks(training("a.one"), training("b.two", after=("a.one",)), training("c.three"))
    assert {name: task.upstream for name, task in made.items()} == {
        "inputs": (),
        "a.one": ("inputs",),
        "c.three": ("inputs",),
        "b.two": ("a.one",),
        "outputs": ("c.three", "b.two"),
    }


def test_a_call_is_an_instance_of_the_providers_operator_where_there_is_one() -> None:
    made = tasks(training("a.job"), file_system("b.lustre", Graph()))
    assert made["a.job"].operator == "TrainingOperator"
    assert made["b.lustre.create"].operator == "AwsCallOperator"


def test_a_choice_joins_and_an_empty_way_goes_straight_there() -> None:
    made = tasks(
        Choose(
            name="a.choose",
            condition=Compare("eq", 1, 1),
            then=Graph((training("a.job"), Wait(name="a.wait", seconds=1))),
            otherwise=Graph((Parallel(name="a.none", branches=(Graph(),)),)),
        ),
        training("b.job", after=("a.choose",)),
    )
    assert made["a.choose"].arguments["then"] == ["a.job", "a.wait"]
    assert made["a.choose"].arguments["otherwise"] == ["a.choose__join"]
    assert made["a.choose__join"].upstream == ("a.job", "a.wait", "a.choose")
    assert made["a.choose__join"].trigger_rule == "none_failed_min_one_success"
    assert made["b.job"].upstream == ("a.choose__join",)


def test_a_loop_waits_for_every_task_of_every_element() -> None:
    made = tasks(loop("a.each", training("a.one"), training("a.two", after=("a.one",))))
    assert made["a.one"].upstream == ("a.each__items",)
    assert made["a.each"].upstream == ("a.each__items", "a.one", "a.two")
    assert made["a.each"].trigger_rule == "all_done"
    assert made["a.two"].loop == "a.each"


def test_a_clean_up_waits_for_every_task_of_the_body() -> None:
    made = tasks(
        file_system("a.fs", Graph((training("a.one"), training("a.two", after=("a.one",))))),
        training("b.job", after=("a.one",)),
    )
    assert made["a.fs.create"].setup
    assert made["a.fs.delete"].teardown_of == "a.fs.create"
    assert made["a.fs.delete"].upstream == ("a.one", "a.two")
    assert made["b.job"].upstream == ("a.two", "a.fs.delete")


def test_everything_that_airflow_cant_do_is_told_at_once() -> None:
    bad = Call(
        name="bad.call",
        operation=Operation(
            "s3",
            "PutObject",
            {"Bucket": "b", "When": datetime.date(2026, 1, 1), "Much": float("nan")},  # type: ignore[dict-item]  # no JSON, which is the point
        ),
    )
    guarded = file_system("g.fs", Graph())
    looping = replace(guarded, name="h.fs", cleanup=Graph((loop("h.each"),)))
    steps = (
        bad,
        Guarded(name="g.fs", acquire=guarded.acquire, body=Graph(), cleanup=Graph((looping,))),
        loop("l.each", loop("l.inner", training("l.job"))),
        training("outputs.job"),
    )
    with pytest.raises(UnsupportedError) as caught:
        render(replace(workflow(*steps), name="no spaces"))
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert told.keys() == {
        "name",
        "outputs.job",
        "bad.call.config.When",
        "bad.call.config.Much",
        "h.fs",
        "h.each",
        "l.inner",
    }
    assert "datetime" not in told["h.each"]
    assert "no JSON form" in told["bad.call.config.When"]


@pytest.mark.parametrize(
    "call",
    [
        training("a.job"),
        falling_back("a.falls_back"),
        file_system("a.fs", Graph()).acquire,
        next(s for s in file_system("a.fs", Graph()).cleanup.steps if isinstance(s, Call)),
        Call(
            name="a.update",
            operation=Operation("sagemaker", "UpdateEndpoint", {}),
            recoveries=(Recovery(ErrorPattern("V", "text"), {"arn": None}),),
        ),
    ],
    ids=lambda call: call.name,
)
def test_a_call_comes_back_as_it_went_in(call: Call) -> None:
    document = json.loads(json.dumps(encode_call(call)))
    found = decode_call(call.name, document, call.operation.request)
    assert found == replace(call, after=())


def test_rendering_is_the_same_in_every_process() -> None:
    code = (
        "from tests.backends.test_airflow import whole\n"
        "from orchestration.backends.airflow import render, to_json\n"
        "import sys\n"
        "sys.stdout.write(to_json(render(whole())))\n"
        "assert 'airflow' not in sys.modules and 'boto3' not in sys.modules\n"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".", "HOME": "/nonexistent"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1
    assert json.loads(made.pop())["tasks"]["a.fs.delete"]["teardown_of"] == "a.fs.create"


def whole() -> Workflow:
    return workflow(
        file_system("a.fs", Graph((loop("a.each", training("a.job")),))),
        Choose(
            name="b.choose",
            condition=Compare("eq", Result("a.each", "items"), "x"),
            then=Graph((training("b.job"),)),
            otherwise=Graph(),
        ),
        parameters={"z": 1, "a": "b"},
    )
