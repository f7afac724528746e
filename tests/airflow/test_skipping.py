"""A stage whose condition does not hold is shown as skipped, and what follows it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.backends import airflow as rendering
from orchestration.backends.airflow import TaskSpec
from orchestration.expressions import Compare, Function, Parameter, Result, Tree, apply
from orchestration.graph import (
    Call,
    Choose,
    Concluded,
    Graph,
    Operation,
    Output,
    Step,
    Workflow,
)
from orchestration.local.airflow import LocalAirflow
from tests.airflow.conftest import Run, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

pytestmark = pytest.mark.xdist_group("airflow")
TAGGED = "arn:aws:sagemaker:us-east-1:123456789012:training-job/"


def short(name: str, after: tuple[str, ...] = ()) -> Call:
    request = {"ResourceArn": TAGGED + name.replace(".", "-")}
    tags = Output(("Tags",), kind="list", columns=("Key",))
    operation = Operation("sagemaker", "ListTags", request)
    return Call(name=name, operation=operation, outputs={"tags": tags}, after=after)


def only_if(way: str, step: Step, after: tuple[str, ...] = (), **collect: Tree) -> Choose:
    return Choose(
        name=f"{step.name.partition('.')[0]}.when",
        condition=Compare("eq", Parameter("way"), way),
        then=Graph((step,)),
        otherwise=Graph(),
        collect=collect,
        absent=dict.fromkeys(collect),
        after=after,
    )


def pipeline() -> Workflow:
    body = (
        only_if("none", short("no.list"), tags=Result("no.list", "tags")),
        only_if("all", short("yes.list"), after=("no.when",)),
        only_if("none", training("job.job"), ("no.when",), model=Result("job.job", "artifacts")),
        short("last.list", after=("job.when", "yes.when")),
    )
    conclusion = (only_if("none", short("told.list")), short("over.list", after=("told.when",)))
    outputs = {
        "tags": apply(Function.FIRST_OF, Result("no.when", "tags"), "none"),
        "model": Result("job.when", "model"),
    }
    step = Concluded(name="outcome", body=Graph(body), conclusion=Graph(conclusion))
    return workflow(step, outputs=outputs, parameters={"way": "all"}, name="skips")


def asked(aws: ScriptedAws) -> list[str]:
    """Return the steps that have sent their request."""
    named = [request.get("ResourceArn", "").rpartition("/")[2] for _, request in aws.looks]
    return [name for name in named if name.endswith("-list")]


def test_what_is_skipped_is_shown_so_and_what_follows_goes_on(run: Run, aws: ScriptedAws) -> None:
    ended = run(pipeline())
    assert ended.state == "success", (ended.error, ended.cause)
    assert ended.outputs == {"tags": "none", "model": None}
    assert asked(aws) == ["yes-list", "last-list", "over-list"]
    shown = states(ended)
    skipped = {name for name, state in shown.items() if state == "skipped"}
    assert skipped == {"no", "job.job", "job.when__join", "told"}
    assert {state for name, state in shown.items() if name not in skipped} == {"success"}


DAG_FILE = """
from airflow.sdk import DAG, task
from orchestration.airflow import task_group
from tests.airflow.test_skipping import pipeline

@task.branch
def which():
    return []

with DAG("mine"):
    which() >> task_group(pipeline(), parameters={"way": "all"})
"""


def test_a_group_that_is_skipped_is_skipped_as_a_whole(
    airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(DAG_FILE)
    ended = airflow.run(path, aws=aws, run_id="skipped")
    assert (aws.calls, asked(aws)) == ([], [])
    inside = {name: state for name, state in states(ended).items() if name.startswith("skips.")}
    assert inside.pop("skips.outcome") == "skipped"
    assert set(inside.values()) == {"skipped"}


def tasks(*steps: Step) -> dict[str, TaskSpec]:
    made = rendering.render(workflow(*steps, parameters={"way": "all"}))
    return {task.task_id: task for task in made.tasks}


def test_what_follows_waits_for_what_begins_its_place() -> None:
    made = {task.task_id: task for task in rendering.render(pipeline()).tasks}
    rule = "none_failed_min_one_success"
    for name, begun_by in (("yes", "inputs"), ("last", "inputs"), ("over", "outcome")):
        assert made[name].trigger_rule == rule
        assert begun_by in made[name].upstream
    assert made["no"].trigger_rule == made["outputs"].trigger_rule == "all_success"


def test_in_a_way_that_may_not_be_taken_a_stage_that_does_nothing_succeeds() -> None:
    inner = (only_if("none", short("no.list")), short("last.list", after=("no.when",)))
    way = Choose(
        name="a.way",
        condition=Compare("eq", Parameter("way"), "all"),
        then=Graph((training("a.job"), *inner)),
        otherwise=Graph(),
    )
    made = tasks(way)
    assert "skips" not in made["no"].arguments
    assert made["last"].trigger_rule == "all_success"


def test_what_follows_a_setup_keeps_its_rule() -> None:
    before = only_if("none", short("no.list"))
    made = tasks(
        before, replace(file_system("d.fs", Graph((training("d.job"),))), after=("no.when",))
    )
    assert made["no"].arguments["skips"] is True
    [setup] = [task for task in made.values() if task.setup]
    assert "no" in setup.upstream
    assert {task.trigger_rule for task in made.values() if setup.task_id in task.upstream} == {
        "all_success"
    }
