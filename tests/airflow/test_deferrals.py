"""What was done before a task is deferred is not done again when it goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration.airflow.journal import MOST_BYTES, Journal
from orchestration.errors import RunError
from orchestration.execution.effects import Broke
from orchestration.expressions import Field, Item, Result, join
from orchestration.graph import ForEach, Graph, Output, Parallel, Read, Wait
from tests.airflow.conftest import Run, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

# One Airflow for all of them.
pytestmark = pytest.mark.xdist_group("airflow")

SLOW = ["InProgress", "InProgress", "Completed"]


def test_a_loop_in_a_loop_waits_for_its_jobs_and_pays_once(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["n-"] = SLOW
    inner = ForEach(
        name="l.inner",
        items=["x", "y"],
        body=Graph((training("l.job", job=join("n-", Item())),)),
        collect={"arn": Result("l.job", "arn")},
        max_concurrency=2,
    )
    outer = ForEach(
        name="l.outer",
        items=["a"],
        body=Graph((inner,)),
        collect={"inner": Result("l.inner", "items")},
        max_concurrency=1,
    )
    ended = run(workflow(outer, outputs={"items": Result("l.outer", "items")}))
    assert ended.state == "success", (ended.error, ended.cause)
    assert aws.count()["CreateTrainingJob"] == 2
    arn = "arn:aws:sagemaker:us-east-1:1:training-job/n-{}"
    assert ended.outputs == {"items": [{"inner": [{"arn": arn.format(n)} for n in "xy"]}]}


def test_a_clean_up_may_loop_over_jobs(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["clean-"] = SLOW
    loop = ForEach(
        name="g.each",
        items=["x", "y"],
        body=Graph((training("g.clean", job=join("clean-", Item())),)),
        collect={},
        max_concurrency=2,
    )
    guard = file_system("g.fs", Graph((training("g.job"),)))
    steps = (*(replace(s, after=("g.each",)) for s in guard.cleanup.steps), loop)
    ended = run(workflow(replace(guard, cleanup=Graph(steps))))
    assert ended.state == "success", (ended.error, ended.cause)
    assert aws.count()["CreateTrainingJob"] == 3
    assert aws.count()["DeleteFileSystem"] == 1


def test_what_is_too_large_for_a_deferral_is_left_as_an_xcom(run: Run, aws: ScriptedAws) -> None:
    rows = [{"b": "x" * 100}] * (MOST_BYTES // 50)
    aws.objects["s3://bucket/report.json"] = {"rows": rows}
    aws.statuses["job-"] = SLOW
    read = Read(
        name="t.read",
        uri="s3://bucket/report.json",
        outputs={"rows": Output(("rows",), kind="list")},
    )
    it = workflow(
        read,
        training("t.job", job="job-1", after=("t.read",)),
        outputs={"rows": Result("t.read", "rows"), "arn": Result("t.job", "arn")},
    )
    ended = run(it)
    assert ended.state == "success", (ended.error, ended.cause)
    assert states(ended).keys() == {"inputs", "t", "outputs"}
    assert (aws.count()["GetObject"], aws.count()["CreateTrainingJob"]) == (1, 1)
    assert ended.outputs is not None
    assert ended.outputs["rows"] == rows


def test_a_long_pause_holds_no_worker(run: Run, aws: ScriptedAws) -> None:
    progress: list[Any] = []
    ended = run(workflow(Wait(name="w.long", seconds=600)), progress)
    assert ended.state == "success", (ended.error, ended.cause)
    assert "deferred" in {task.state for task in progress if task.task_id == "w"}


def test_a_branch_that_failed_stays_failed_while_another_is_waited_for(
    run: Run, aws: ScriptedAws
) -> None:
    aws.faults.append(("CreateTrainingJob", 400, "AccessDeniedException", False))
    aws.statuses["b-"] = SLOW
    both = Parallel(
        name="e.both",
        branches=(
            Graph((training("e.a", job=join("a-", Field(Item(), "n"))),)),
            Graph(
                (
                    Wait(name="e.later", seconds=2_000),
                    training("e.b", job=join("b-", Field(Item(), "n")), after=("e.later",)),
                )
            ),
        ),
    )
    loop = ForEach(
        name="e.each", items=[{"n": "1"}], body=Graph((both,)), collect={}, max_concurrency=1
    )
    ended = run(workflow(loop))
    assert (ended.state, ended.error) == ("failed", "AccessDenied")
    assert aws.jobs.keys() == {"b-1"}
    assert aws.count()["CreateTrainingJob"] == 2


def test_a_failed_step_is_known_and_trouble_is_not() -> None:
    journal = Journal()
    journal.broke(Broke("a", "Bad", "cause"))
    journal.broke(Broke("b", "Trouble", "cause", passing=True))
    with pytest.raises(RunError, match="Bad: cause"):
        journal.recalled("a")
    assert journal.recalled("b") is None
