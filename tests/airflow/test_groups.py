"""Pipelines as task groups in somebody's own DAG, with tasks before and after."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, task
from airflow.sdk import task_group as airflow_group
from airflow.serialization.serialized_objects import DagSerialization

from orchestration.airflow import PipelineGroup, dag, task_group, versions
from orchestration.errors import PipelineError, UnsupportedError
from orchestration.expressions import Compare, Item, Parameter, Result, join, run_id
from orchestration.graph import Choose, Concluded, Graph, Kept, ParameterSpec, Wait, Workflow
from orchestration.local.airflow import AirflowRun, LocalAirflow
from tests.airflow.conftest import states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.test_runs import each
from tests.airflow.workflows import file_system, training, workflow
from tests.backends.test_airflow import whole

pytestmark = pytest.mark.xdist_group("airflow")


def pipeline() -> Workflow:
    """One of everything that names another task: reads, a loop of jobs, a choice, a guard."""
    first = training("a.job", Environment={"TEXT": Parameter("text"), "BRANCH": Parameter("way")})
    loop = each(
        "b.each",
        ["x", "y"],
        training("b.job", job=join("b-", Item(), "-", run_id()), Environment={"E": Item()}),
        collect=Result("b.job", "artifacts"),
        after=("a.job",),
    )
    way = Choose(
        name="c.way",
        condition=Compare("eq", Parameter("way"), "train"),
        then=Graph((training("c.job"),)),
        otherwise=Graph(),
        after=("b.each",),
    )
    guard = file_system("d.fs", Graph((training("d.job", Environment={"T": Parameter("text")}),)))
    return workflow(
        first,
        loop,
        way,
        guard,
        outputs={"model": Result("a.job", "artifacts"), "each": Result("b.each", "items")},
        parameters={"text": "default", "way": "skip"},
        name="whole_pipeline",
    )


DAG_FILE = """
import json
from dataclasses import replace
from pathlib import Path

from airflow.sdk import DAG, TaskGroup, task
from orchestration.airflow import task_group
from tests.airflow.test_groups import pipeline

@task
def before():
    return "{{ ds }} of the task before"

@task
def after(first, model):
    Path(__file__).with_name("seen.json").write_text(json.dumps([first, model]))

with DAG("mine", params={"text": "not ours"}):
    with TaskGroup("outer"):
        first = task_group(pipeline(), parameters={"text": before(), "way": "skip"})
    second = task_group(pipeline(), group_id="second", parameters={"text": "{{ ds }}"})
    first >> second >> after(first.outputs, second.outputs["model"])
"""


@pytest.fixture
def run_file(airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path, request: Any) -> Any:
    def run_file(text: str) -> AirflowRun:
        path = tmp_path / "mine.py"
        path.write_text(text)
        return airflow.run(path, aws=aws, run_id=request.node.name)

    return run_file


def test_two_groups_of_one_pipeline_between_other_tasks(
    run_file: Any, aws: ScriptedAws, tmp_path: Path
) -> None:
    ended = run_file(DAG_FILE)
    assert ended.state == "success", ended.log
    assert aws.count()["CreateTrainingJob"] == 8, "no job of one group is taken for the other's"
    texts = [r["Environment"]["TEXT"] for r in aws.of("CreateTrainingJob") if "BRANCH" in str(r)]
    assert texts == ["{{ ds }} of the task before", "{{ ds }}"]
    of_first, model = json.loads((tmp_path / "seen.json").read_text())
    assert [of_first["model"] != model, len(of_first["each"])] == [True, 2]
    assert model.startswith("s3://bucket/a-job-")
    assert states(ended)["outer.whole_pipeline.c.job"] == "skipped"


def test_what_fails_in_a_group_is_cleaned_up_and_holds_up_what_comes_after(
    run_file: Any, aws: ScriptedAws
) -> None:
    aws.statuses["d-job"] = ["Failed"]
    ended = run_file(DAG_FILE)
    after = states(ended)
    assert ended.state == "failed"
    assert after["outer.whole_pipeline.d.job"] == "failed"
    assert after["outer.whole_pipeline.d.fs.delete"] == "success"
    assert {state for name, state in after.items() if name.startswith("second")} == {
        "upstream_failed"
    }
    assert aws.count()["DeleteFileSystem"] == 1


def test_a_wrong_result_of_a_task_before_is_refused_before_anything_is_paid(
    run_file: Any, aws: ScriptedAws
) -> None:
    ended = run_file(DAG_FILE.replace('return "{{ ds }} of the task before"', "return 7"))
    assert (ended.error, aws.calls) == ("InvalidInput", [])
    assert ended.cause == "parameter text is not of type string"
    missing = run_file(DAG_FILE.replace('return "{{ ds }} of the task before"', "return None"))
    assert (missing.error, aws.calls) == ("InvalidInput", [])


def test_a_group_survives_serialization_with_its_edges() -> None:
    with DAG("mine") as made:
        with TaskGroup("outer"):
            start, group = _before(), task_group(whole(), group_id="ours")
        end = _after(group.outputs)
        start >> group >> end
    document = DagSerialization.to_dict(made)
    DagSerialization.validate_schema(document)
    again = DagSerialization.from_dict(document)
    assert set(again.task_ids) == set(made.task_ids)
    ours = [name for name in again.task_ids if name.startswith("outer.ours.")]
    assert len(ours) == len(dag(whole()).task_ids)
    assert again.get_task("outer.ours.inputs").upstream_task_ids == {"outer._before"}
    assert "outer.ours.outputs" in again.get_task("_after").upstream_task_ids
    assert made.get_task("outer.ours.a.fs.create").label == "fs.create"
    assert made.get_task("outer.ours.a.fs.create").is_setup
    assert json.dumps(document)


def test_a_group_is_a_group_like_any_other() -> None:
    with DAG("mine", default_args={"retries": 7}) as made:
        group = task_group(workflow(training("a.job"), name="pipe.line"), ui_color="#fff")
    assert isinstance(group, PipelineGroup)
    assert (group.group_id, group.ui_color) == ("pipe_line", "#fff")
    task = made.get_task("pipe_line.a")
    assert (task.retries, task.owner) == (7, "orchestration")
    assert [task.task_id for task in made.tasks if getattr(task, "returns_dag_result", False)] == []


def test_a_task_that_a_group_waits_for_gives_its_parameters() -> None:
    with DAG("mine") as made:
        task_group(_named(), parameters={"bucket": _before()})
    assert made.get_task("hand_built.inputs").upstream_task_ids == {"_before"}


def test_parameters_of_a_group_are_checked_while_parsing() -> None:
    def group(**parameters: Any) -> None:
        with DAG("mine"):
            task_group(_named(), parameters=parameters)

    group(bucket="b")
    with pytest.raises(PipelineError, match="no default"):
        group()
    with pytest.raises(PipelineError, match="did you mean 'bucket'"):
        group(buckte="b")
    with pytest.raises(PipelineError, match="is not of type string"):
        group(bucket=3)
    with DAG("other"), pytest.raises(PipelineError, match="did you mean 'bucket'"):
        task_group(_named(), parameters={"buckte": _before()})


def test_each_face_says_where_the_other_belongs() -> None:
    it = workflow(Wait(name="a.wait", seconds=1))
    with pytest.raises(PipelineError, match=r"there is no DAG around"):
        task_group(it)
    with DAG("mine"), TaskGroup("outer"), pytest.raises(PipelineError, match=r"use task_group\(\)"):
        dag(it)


MAPPED = """
import json
from pathlib import Path

from airflow.sdk import DAG, task, task_group
from orchestration.airflow import task_group as pipeline
from tests.airflow.test_groups import mappable

@task
def markets():
    return ["de", "fr"]

@task
def after(models):
    Path(__file__).with_name("seen.json").write_text(json.dumps(list(models)))

with DAG("mine"):

    @task_group
    def each(market):
        return pipeline(mappable(), parameters={"text": market}).outputs["model"]

    after(each.expand(market=markets()))
"""


def mappable() -> Workflow:
    """A guard around a job, and another one; no loop and no choice."""
    job = training("c.job", Environment={"TEXT": Parameter("text")})
    return workflow(
        file_system("c.fs", Graph((job,))),
        training("d.job", Environment={"TEXT": Parameter("text")}, after=("c.fs",)),
        outputs={"model": Result("d.job", "artifacts")},
        parameters={"text": "default"},
        name="mapped",
    )


def test_a_group_is_mapped_over_a_list(run_file: Any, aws: ScriptedAws, tmp_path: Path) -> None:
    ended = run_file(MAPPED)
    assert ended.state == "success", ended.log
    created = aws.of("CreateTrainingJob")
    assert sorted((r["TrainingJobName"][:1], r["Environment"]["TEXT"]) for r in created) == [
        *(("c", "de"), ("c", "fr"), ("d", "de"), ("d", "fr")),
    ]
    assert len({request["TrainingJobName"] for request in created}) == 4
    names = {r["Environment"]["TEXT"]: r["TrainingJobName"] for r in created}
    models = json.loads((tmp_path / "seen.json").read_text())
    assert [names["de"] in models[0], names["fr"] in models[1]] == [True, True]
    assert (aws.count()["CreateFileSystem"], aws.count()["DeleteFileSystem"]) == (2, 2)


def test_an_element_that_fails_cleans_up_after_itself_alone(
    run_file: Any, aws: ScriptedAws
) -> None:
    aws.statuses["c-job"] = ["Failed"]
    ended = run_file(MAPPED)
    assert (ended.state, ended.error) == ("failed", "JobFailed")
    assert (aws.count()["CreateFileSystem"], aws.count()["DeleteFileSystem"]) == (2, 2)


def choosing() -> Workflow:
    """A choice between jobs, one of which has a choice with an empty way before it."""
    asked = Choose(
        name="b.asked",
        condition=Compare("eq", Parameter("text"), "nobody"),
        then=Graph((training("b.never"),)),
        otherwise=Graph(),
    )
    job = training("b.job", after=("b.asked",), Environment={"TEXT": Parameter("text")})
    choice = Choose(
        name="b.way",
        condition=Compare("eq", Parameter("text"), "de"),
        then=Graph((asked, job)),
        otherwise=Graph((training("b.other", Environment={"TEXT": Parameter("text")}),)),
        collect={"model": Result("b.job", "artifacts")},
        absent={"model": Result("b.other", "artifacts")},
    )
    last = training("c.job", after=("b.way",), Environment={"TEXT": Parameter("text")})
    return workflow(
        choice,
        last,
        outputs={"model": Result("b.way", "model")},
        parameters={"text": "default"},
        name="choosing",
    )


MACHINE = {"InstanceCount": 1, "VolumeSizeInGB": 10}
TEXT = Parameter("text")


def concluding() -> Workflow:
    """A job, and one that follows it where it fails."""
    failed = Choose(
        name="alarm.when",
        condition=Compare("eq", Result("outcome", "state"), "failed"),
        then=Graph((training("alarm.job", Environment={"CAUSE": Result("outcome", "cause")}),)),
        otherwise=Graph(),
    )
    kept = Kept(value=Result("a.job", "artifacts"), steps=("a.job",))
    told = Choose(
        name="told.when",
        condition=Compare("ne", Result("outcome", "a"), None),
        then=Graph((training("told.job", Environment={"MODEL": Result("outcome", "a")}),)),
        otherwise=Graph(),
    )
    end = Concluded(
        name="outcome",
        body=Graph((training("a.job", ResourceConfig={**MACHINE, "InstanceType": TEXT}),)),
        conclusion=Graph((failed, told)),
        kept={"a": kept},
    )
    return workflow(end, parameters={"text": "default"}, name="concluding")


@pytest.mark.skipif(not versions.MAPS_CHOICES, reason="refused on this Airflow")
def test_each_element_of_a_mapped_group_goes_one_way(run_file: Any, aws: ScriptedAws) -> None:
    ended = run_file(MAPPED.replace("mappable", "choosing"))
    assert ended.state == "success", ended.log
    created = aws.of("CreateTrainingJob")
    assert sorted((r["TrainingJobName"][:5], r["Environment"]["TEXT"]) for r in created) == [
        *(("b-job", "de"), ("b-oth", "fr"), ("c-job", "de"), ("c-job", "fr")),
    ]


@pytest.mark.skipif(not versions.MAPS_CHOICES, reason="refused on this Airflow")
def test_what_follows_the_end_of_an_element_knows_how_that_one_ended(
    run_file: Any, aws: ScriptedAws
) -> None:
    aws.refusals["fr"] = "no machines in France"
    text = MAPPED.replace("mappable", "concluding").replace('.outputs["model"]', ".outputs")
    ended = run_file(text)
    assert ended.state == "failed"
    created = {r["TrainingJobName"].partition("-")[0]: r for r in aws.of("CreateTrainingJob")}
    assert "no machines in France" in created["alarm"]["Environment"]["CAUSE"]
    assert created["told"]["Environment"]["MODEL"].startswith("s3://bucket/a-job-")
    names = sorted(r["TrainingJobName"].partition("-")[0] for r in aws.of("CreateTrainingJob"))
    assert (names.count("alarm"), names.count("told")) == (1, 1)


@pytest.mark.parametrize("made", [choosing, concluding])
def test_choices_in_a_mapped_group_are_refused_where_they_deadlock(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[], Workflow]
) -> None:
    monkeypatch.setattr(versions, "MAPS_CHOICES", False)

    @airflow_group
    def mapped(element: str) -> None:
        task_group(made(), parameters={"text": element})

    with DAG("mine"), pytest.raises(UnsupportedError, match="for each element of a list"):
        mapped.expand(element=["a", "b"])


def test_a_pipeline_with_a_loop_is_not_mapped() -> None:
    whole, reason = pipeline(), "its 'b.each' is mapped itself"
    steps = tuple(s for s in whole.graph.steps if s.name == "b.each")
    steps = tuple(replace(step, after=()) for step in steps)
    part = replace(whole, graph=Graph(steps), outputs={})

    @airflow_group
    def mapped(element: str) -> None:
        task_group(part, parameters={"text": element, "way": "skip"})

    with DAG("mine"), pytest.raises(PipelineError, match=f"can't be mapped over a list: {reason}"):
        mapped.expand(element=["a", "b"])


def _named() -> Workflow:
    it = workflow(training("a.job", Environment={"B": Parameter("bucket")}))
    return replace(it, parameters=(ParameterSpec(name="bucket"),))


@task
def _before() -> str:
    return "b"


@task
def _after(value: Any) -> Any:
    return value
