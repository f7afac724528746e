"""The specification of a DAG is a function of the workflow, and says what it can't do."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from orchestration import Pipeline
from orchestration.backends.airflow import TaskSpec, render
from orchestration.errors import UnsupportedError
from orchestration.expressions import Compare, Item, Json, Result, join, run_id
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    ForEach,
    Graph,
    Operation,
    Parallel,
    Recovery,
    Step,
    Wait,
    Workflow,
)
from orchestration.graph.codec import decode, encode
from tests.airflow.workflows import falling_back, file_system, training, workflow

ROOT = Path(__file__).parents[2]


def tasks(*steps: Step) -> dict[str, TaskSpec]:
    return {task.task_id: task for task in render(workflow(*steps)).tasks}


def loop(name: str, *body: Step) -> ForEach:
    return ForEach(name=name, items=[1], body=Graph(body), collect={"n": Item()}, max_concurrency=3)


def call(name: str, operation: str = "CreateModel", after: tuple[str, ...] = ()) -> Call:
    return Call(name=name, operation=Operation("sagemaker", operation, {}), after=after)


def steps_of(task: TaskSpec) -> list[str]:
    return [step.name for step in decode(task.arguments.get("steps", ()))]


def test_a_stage_of_one_task_has_its_name() -> None:
    made = tasks(training("a.one"), training("b.two", after=("a.one",)), training("c.three"))
    assert {name: task.upstream for name, task in made.items()} == {
        "inputs": (),
        "a": ("inputs",),
        "c": ("inputs",),
        "b": ("a",),
        "outputs": ("c", "b"),
        "leftovers": ("a", "c", "b"),
    }


def test_a_call_is_an_instance_of_the_providers_operator_where_there_is_one() -> None:
    made = tasks(training("a.job"), file_system("b.lustre", Graph()))
    assert made["a"].operator == "TrainingOperator"
    assert made["b.lustre.create"].operator == "FileSystemOperator"
    assert made["b.lustre.delete"].operator == "StepsOperator"


def test_short_steps_of_a_stage_run_together_and_a_job_has_one_task() -> None:
    made = tasks(
        call("a.first"),
        call("a.second", after=("a.first",)),
        training("a.job", after=("a.second",)),
        call("a.after", after=("a.job",)),
        training("a.other", after=("a.after",)),
    )
    assert {name: steps_of(task) for name, task in made.items() if task.stage == "a"} == {
        "a.job": ["a.first", "a.second", "a.job", "a.after"],
        "a.other": ["a.other"],
    }


def test_nothing_waits_for_a_job_that_it_does_not_need() -> None:
    made = tasks(
        call("a.first"),
        training("a.job", after=("a.first",)),
        training("b.job", after=("a.first",)),
    )
    assert steps_of(made["a.first"]) == ["a.first"]
    assert made["b"].upstream == ("a.first",)


def test_a_replay_never_changes_what_was_read() -> None:
    made = tasks(
        call("a.look", "DescribeModel"),
        call("a.delete", "DeleteModel", after=("a.look",)),
    )
    assert made.keys() == {"inputs", "a.look", "a.delete", "outputs"}


def test_a_choice_without_a_job_is_no_branch() -> None:
    made = tasks(
        Choose(
            name="a.choose",
            condition=Compare("eq", 1, 1),
            then=Graph((call("a.then"), Wait(name="a.wait", seconds=1))),
            otherwise=Graph(),
        )
    )
    assert made.keys() == {"inputs", "a", "outputs"}


def test_a_choice_joins_and_an_empty_way_goes_straight_there() -> None:
    made = tasks(
        Choose(
            name="a.choose",
            condition=Compare("eq", 1, 1),
            then=Graph((training("a.job"), training("a.other"))),
            otherwise=Graph((Parallel(name="a.none", branches=(Graph(),)),)),
        ),
        training("b.job", after=("a.choose",)),
    )
    assert made["a.choose"].arguments["then"] == ["a.job", "a.other"]
    assert made["a.choose__join"].trigger_rule == "none_failed_min_one_success"
    assert made["b"].upstream == ("a.choose__join",)


def test_a_loop_over_jobs_is_one_mapped_task_between_its_list_and_its_end() -> None:
    made = tasks(
        call("a.list", "ListModels"),
        replace(
            loop("a.each", training("a.one"), training("a.two", after=("a.one",))),
            after=("a.list",),
        ),
        call("a.after", after=("a.each",)),
    )
    assert made.keys() == {"inputs", "a.list", "a.each", "a.after", "outputs", "leftovers"}
    assert made["a.each"].mapped_over == "a.list"
    assert made["a.each"].max_concurrency == 3
    assert made["a.list"].arguments["returns"] == [1]
    assert made["a.after"].upstream == ("a.list", "a.each")
    assert made["a.after"].trigger_rule == "none_failed_min_one_success"


def test_a_loop_without_a_job_runs_inside_its_task() -> None:
    made = tasks(loop("a.each", call("a.one")), call("a.after", after=("a.each",)))
    assert steps_of(made["a"]) == ["a.each", "a.after"]


def test_loops_in_loops_and_in_clean_ups_run_inside_one_task() -> None:
    guarded = file_system("g.fs", Graph((training("g.job"),)))
    looping = replace(guarded, cleanup=Graph((loop("g.each", training("g.clean")),)))
    made = tasks(looping, loop("l.each", loop("l.inner", training("l.job"))))
    assert steps_of(made["g.each"]) == ["g.each"]
    assert made["g.each"].teardown_of == "g.fs.create"
    assert made["l.each"].mapped_over == "l.each__items"


def test_a_clean_up_waits_for_every_task_of_the_body() -> None:
    made = tasks(
        file_system("a.fs", Graph((training("a.one"), training("a.two", after=("a.one",))))),
        training("b.job", after=("a.one",)),
    )
    assert made["a.fs.create"].setup
    assert made["a.fs.delete"].teardown_of == "a.fs.create"
    assert made["a.fs.delete"].upstream == ("a.one", "a.two")
    assert made["b"].upstream == ("a.two", "a.fs.delete")


def test_a_clean_up_that_succeeds_does_not_hide_that_the_body_failed() -> None:
    made = tasks(file_system("a.fs", Graph((training("a.job"),))))
    assert made["outputs"].upstream == ("a.job", "a.fs.delete")


def test_waiting_for_what_is_acquired_begins_the_body() -> None:
    made = tasks(file_system("a.fs", Graph((training("b.job"),))))
    assert steps_of(made["a.fs.create"]) == ["a.fs.create"]
    assert steps_of(made["a.fs.create_ready"]) == ["a.fs.create_ready"]
    assert made["b"].upstream == ("a.fs.create_ready",)


def test_everything_that_airflow_cant_do_is_told_at_once() -> None:
    bad = Call(
        name="bad.call",
        operation=Operation(
            "s3",
            "PutObject",
            {"Bucket": "b", "When": datetime.date(2026, 1, 1), "Much": float("nan")},  # type: ignore[dict-item]  # no JSON, which is the point
        ),
    )
    inner = loop("g.inner", file_system("g.inside", Graph((training("g.job"),))))
    steps = (
        bad,
        loop("g.each", file_system("g.fs", Graph((inner,)))),
        training("outputs.job"),
    )
    with pytest.raises(UnsupportedError) as caught:
        render(replace(workflow(*steps), name="no spaces"))
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert told.keys() == {
        "name",
        "outputs.job",
        "bad.steps[0].$Call.operation.$Operation.request.When",
        "bad.steps[0].$Call.operation.$Operation.request.Much",
        "g.inner",
    }
    assert "no JSON form" in told["bad.steps[0].$Call.operation.$Operation.request.When"]


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
    assert decode(json.loads(json.dumps(encode(call)))) == call


@pytest.mark.parametrize(("name", "most"), [("digits", 10), ("llm_fsx", 10)])
def test_a_pipeline_has_few_tasks(name: str, most: int) -> None:
    spec = render(Pipeline.load(ROOT / "dags" / f"{name}.yaml").lower())
    assert len(spec.tasks) <= most


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


def test_the_end_of_a_loop_has_a_name_of_its_own() -> None:
    first, second = loop("a.each", training("a.job")), loop("a.all", training("a.other"))
    made = tasks(first, second, loop("b.each", training("b.job")), training("b.results"))
    ends = [name for name, task in made.items() if "gathers" in task.arguments]
    assert ends == ["a.results", "a.all__results", "b.each__results"]


def writers(workflow: Workflow) -> dict[str, list[str]]:
    return {
        task.task_id: list(cast("Mapping[str, Json]", task.arguments["writes"]))
        for task in render(workflow).tasks
        if "writes" in task.arguments
    }


def test_the_last_task_of_a_stage_leaves_what_the_stage_writes() -> None:
    body = Graph((training("a.job"), training("a.next", after=("a.job",))))
    made = replace(
        workflow(file_system("a.fs", body), training("b.job")),
        written={
            "a.data": join("s3://", run_id()),
            "a.model": Result("a.job", "artifacts"),
            "a.place": "s3://bucket/place",
            "b.model": Result("b.job", "artifacts"),
        },
    )
    assert writers(made) == {
        "a.next": ["hand_built.a.data", "hand_built.a.model", "s3://bucket/place"],
        "b": ["hand_built.b.model"],
    }
    [following] = [task for task in render(made).tasks if task.task_id == "a.next"]
    reads = cast("Mapping[str, Json]", following.arguments["reads"])
    assert reads["a.job"] == {"task": "a.job", "element": False}


@pytest.mark.parametrize("uri", ["s3://bucket/a/", "s3://bucket/a#b", "s3://bucket/a?b", "S3://b"])
def test_a_uri_that_airflow_would_change_is_no_name(uri: str) -> None:
    made = replace(workflow(training("a.job")), written={"a.data": uri})
    assert writers(made) == {"a": ["hand_built.a.data"]}


def test_a_task_that_may_be_skipped_leaves_nothing() -> None:
    choose = Choose(
        name="a.choose",
        condition=Compare("eq", 1, 1),
        then=Graph((training("a.job"),)),
        otherwise=Graph(),
    )
    made = replace(workflow(choose), written={"a.data": join("s3://", run_id())})
    assert writers(made) == {}
    after = training("a.next", after=("a.choose",))
    made = replace(workflow(choose, after), written=made.written)
    assert writers(made) == {"a.next": ["hand_built.a.data"]}


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
