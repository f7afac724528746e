"""State machines that this package rendered give back the files that they were made of."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from orchestration import AwsCall, Pipeline
from orchestration.backends import airflow, companion, stepfunctions
from orchestration.backends.origins import lacking, texts
from orchestration.backends.stepfunctions.embedding import fragment
from orchestration.errors import PipelineError
from orchestration.graph import Workflow
from orchestration.importing import Imported, described, from_data
from orchestration.pipeline.yaml import load, parsed
from tests.deploy import pipelines
from tests.pipeline.building import job, pipeline

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples").glob("*/*.yaml"))


@pytest.mark.parametrize("name", ["digits", "llm_fsx"])
def test_a_definition_gives_back_the_file_that_it_was_made_of(name: str) -> None:
    definition = json.loads((ROOT / f"statemachines/{name}.asl.json").read_text(encoding="utf-8"))
    imported = from_data(definition)
    again = parsed(imported.yaml(), Path("again.yaml"))
    assert (again, imported.notes) == (load(ROOT / f"dags/{name}.yaml"), ())
    assert yaml.safe_load(imported.yaml()) == again


@pytest.mark.thorough
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_examples_are_given_back(path: Path) -> None:
    definition = stepfunctions.render(Pipeline.load(path).lower())
    imported = from_data(json.loads(json.dumps(definition)))
    assert (dict(imported.description), imported.notes) == (load(path), ())


@pytest.fixture(scope="module")
def sweep() -> dict[str, Any]:
    return stepfunctions.render(Pipeline.load(ROOT / "examples/tuning/sweep.yaml").lower())


def test_the_comment_is_yaml_that_a_person_reads(sweep: dict[str, Any]) -> None:
    comment, pipeline, lock = str(sweep["Comment"]).split("\n---\n")
    data = load(ROOT / "examples/tuning/sweep.yaml")
    assert comment == data.get("description", data["name"])
    assert yaml.safe_load(pipeline) == data
    assert set(yaml.safe_load(lock)) == {"sources"}
    assert str(ROOT) not in sweep["Comment"]


def test_all_that_was_changed_since_is_told(sweep: dict[str, Any]) -> None:
    changed = copy.deepcopy(sweep)
    states = changed["States"]
    by_hand, removed = list(states)[:8], list(states)[8]
    for name in by_hand:
        states[name]["Comment"] = "by hand"
    states[by_hand[0]].pop("Type")
    kind = json.dumps(sweep["States"][by_hand[0]]["Type"])
    del states[removed]
    states["New"] = {"Type": "Pass", "End": True}
    changed["TimeoutSeconds"] = 60
    changed["QueryLanguage"] = "JSONPath"
    imported = from_data(changed)
    assert imported.description["name"] == "rentals"
    summary, *notes = imported.notes
    assert summary.path == "States"
    assert summary.message.startswith("the definition is not what is rendered here")
    told = {note.path: note.message for note in notes}
    assert told.pop(f"States.{removed}").startswith('is missing: {"Type": ')
    assert told == {
        "TimeoutSeconds": "is not rendered: 60",
        "QueryLanguage": 'is "JSONPath", rendered as "JSONata"',
        "States.New": 'is not rendered: {"Type": "Pass", "End": true}',
        **{f"States.{name}": 'is changed: + Comment: "by hand"' for name in by_hand},
        f"States.{by_hand[0]}": f'is changed: - Type: {kind}; + Comment: "by hand"',
    }


def test_a_fragment_and_a_dag_give_back_the_file_too(sweep: dict[str, Any]) -> None:
    file = ROOT / "examples/tuning/sweep.yaml"
    workflow = Pipeline.load(file).lower()
    dag = json.loads(airflow.to_json(airflow.render(workflow), texts(workflow.origin)))
    for rendered in (fragment(workflow, "sweep"), dag):
        imported = from_data(json.loads(json.dumps(rendered)))
        assert (dict(imported.description), imported.notes) == (load(file), ())
    del dag["tasks"]["inputs"]
    dag["tags"] = ["by:hand"]
    assert [str(note).split(":")[0] for note in from_data(dag).notes] == [
        "tasks",
        "tags",
        "tasks.inputs",
    ]


def test_renderings_without_a_file_say_what_to_import_instead() -> None:
    workflow = Pipeline.load(ROOT / "dags/llm_fsx.yaml").lower()
    with pytest.raises(PipelineError, match="this is the companion of pipeline llm-fsx; import"):
        from_data(companion.render(workflow) or {})
    with pytest.raises(PipelineError, match="the DAG of pipeline llm-fsx without its file; import"):
        from_data(json.loads(airflow.to_json(airflow.render(workflow))))
    origin = ["name: llm-fsx", "sources: {}"]
    with pytest.raises(PipelineError, match="holds a pipeline that can't be read here"):
        from_data(json.loads(airflow.to_json(airflow.render(workflow), origin)))
    with pytest.raises(PipelineError, match="the DAG of pipeline llm-fsx without its file; import"):
        from_data(json.loads(airflow.to_json(airflow.render(workflow), origin[:1])))


def test_nested_pipelines_come_back_as_their_stages(tmp_path: Path) -> None:
    say = "kind: aws_call, service: sns, operation: Publish"
    topic = "TopicArn: 'arn:aws:sns:us-east-1:111122223333:t'"
    (tmp_path / "inner.yaml").write_text(
        f"name: inner\nworkspace: s3://bucket/x\nstages:\n"
        f"  tell: {{{say}, request: {{{topic}, Message: m}}}}\n"
    )
    outer = tmp_path / "outer.yaml"
    outer.write_text(
        "name: outer\nworkspace: s3://bucket/x\nstages:\n"
        "  one: {kind: pipeline, file: inner.yaml}\n"
    )
    definition = stepfunctions.render(Pipeline.load(outer).lower())
    imported = from_data(json.loads(json.dumps(definition)))
    assert imported.description["stages"]["one_tell"]["operation"] == "Publish"
    assert (list(imported.description["stages"]), imported.notes) == (["one_tell"], ())
    assert stepfunctions.render(Pipeline.parse(imported.description).lower()) == {
        **definition,
        "Comment": "outer",
    }


def test_no_path_of_the_machine_that_rendered_it_is_carried(tmp_path: Path) -> None:
    """Code is found by its digest, wherever it lay."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "src", elsewhere / "eval"):
        folder.mkdir(parents=True)
        (folder / "run.py").write_text("print(1)\n")
    job = "kind: processing_job, image: i, cluster: {instance_type: ml.m5.large}"
    shared = elsewhere / "eval"
    (project / "inner.yaml").write_text(
        "name: inner\nworkspace: s3://bucket/x\nstages:\n"
        f"  fit: {{{job}, source: {{directory: src, entry_point: run.py}}}}\n"
    )
    file = project / "p.yaml"
    header = "name: p\nworkspace: s3://bucket/x\nrole: arn:aws:iam::111122223333:role/r\n"
    file.write_text(
        f"{header}"
        f"defaults: [{{for: [check], source: {{directory: {shared}}}}}]\n"
        "stages:\n"
        f"  fit: {{{job}, source: {{directory: {project}/../project/src, entry_point: run.py}}}}\n"
        f"  check: {{{job}, source: {{entry_point: run.py}}, "
        f"local: {{directory: {shared}, command: [x]}}}}\n"
    )
    definition = stepfunctions.render(Pipeline.load(file).lower())
    assert str(tmp_path) not in json.dumps(definition)
    imported = from_data(json.loads(json.dumps(definition)))
    stages, [default] = imported.description["stages"], imported.description["defaults"]
    assert stages["fit"]["source"] == {"directory": "src", "entry_point": "run.py"}
    assert default["source"] == {"directory": "eval"}
    assert stages["check"]["local"]["directory"] == "eval"
    assert imported.notes == ()
    file.write_text(f"{header}stages: {{one: {{kind: pipeline, file: {project}/inner.yaml}}}}\n")
    definition = stepfunctions.render(Pipeline.load(file).lower())
    assert str(tmp_path) not in json.dumps(definition)
    imported = from_data(json.loads(json.dumps(definition)))
    assert imported.description["stages"]["one_fit"]["source"]["directory"] == "src"


def test_changes_inside_of_other_states_are_told() -> None:
    path = ROOT / "statemachines/digits.asl.json"
    definition = json.loads(path.read_text(encoding="utf-8"))
    body = next(
        state["ItemProcessor"]
        for state in definition["States"].values()
        if "ItemProcessor" in state
    )
    first = body["StartAt"]
    body["States"][first]["Comment"] = "by hand"
    body["StartAt"] = "Elsewhere"
    told = [str(note) for note in from_data(definition).notes[1:]]
    assert f'States.{first}: is changed: + Comment: "by hand"' in told
    assert any(f'~ ItemProcessor.StartAt: "{first}" -> "Elsewhere"' in each for each in told)
    assert len(told) == 2


@pytest.mark.parametrize("broken", ["name: [", "name: x\nstages: {a: {kind: unheard_of}}", "- 1"])
def test_a_comment_that_holds_no_pipeline_is_told(broken: str) -> None:
    arn = "arn:aws:sns:us-east-1:111122223333:t"
    say = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Parameters": {"TopicArn": arn, "Message": "m"},
        "End": True,
    }
    machine = {"Comment": f"x\n---\n{broken}\n---\nsources: {{}}", "StartAt": "A"}
    imported = from_data({**machine, "States": {"A": say}})
    assert list(imported.description["stages"]) == ["a"]
    assert imported.notes[0].path == "Comment"
    assert "holds a pipeline that can't be read here" in imported.notes[0].message


def test_what_describe_state_machine_says_is_read(sweep: dict[str, Any]) -> None:
    arn = "arn:aws:states:us-east-1:111122223333:stateMachine:sweep"
    told = {"stateMachineArn": arn, "name": "sweep", "definition": json.dumps(sweep)}
    assert from_data(told) == from_data(sweep)


def imported_again(made: Pipeline, **options: Any) -> Imported:
    return from_data(json.loads(json.dumps(stepfunctions.render(made.carried()))), **options)


def test_a_pipeline_of_python_is_given_back(tmp_path: Path) -> None:
    code = pipelines.source_folder(tmp_path / "code")
    made = pipelines.digits(code, schedule={"cron": "0 6 * * *"})
    assert str(tmp_path) not in json.dumps(stepfunctions.render(made.carried()))
    imported = imported_again(made)
    assert imported.notes == ()
    assert imported.description["schedule"] == {"cron": "0 6 * * *"}
    source = imported.description["stages"]["train"]["source"]
    assert (source["directory"], len(source["sha256"])) == ("code", 64)
    again = Pipeline.parse(imported.description)
    assert again.lower() == made.lower()
    assert stepfunctions.render(again.carried()) == stepfunctions.render(made.carried())


def test_a_file_counts_more_than_what_to_yaml_writes() -> None:
    loaded = Pipeline.load(ROOT / "examples/tuning/sweep.yaml")
    assert loaded.carried() is loaded.lower()


def test_programs_that_stand_in_for_images_are_not_carried() -> None:
    fit = job("fit", local={"command": ["/elsewhere/bin/python"], "directory": "/elsewhere"})
    definition = stepfunctions.render(pipeline(fit).carried())
    assert "/elsewhere" not in json.dumps(definition)
    assert from_data(definition).notes == ()


class Query(AwsCall):
    """A kind of stage of a user's own."""

    kind: Literal["query"] = "query"  # type: ignore[assignment]  # Another kind is meant.


QUERY: dict[str, Any] = {"service": "s3", "operation": "ListBuckets", "request": {}}


def test_a_kind_of_a_users_own_is_given_back_with_its_module() -> None:
    made = Pipeline(name="p", workspace="s3://bucket/p", stages=[Query(name="ask", **QUERY)])
    assert imported_again(made, stages=[Query]).description["stages"]["ask"]["kind"] == "query"
    [note, *_] = imported_again(made).notes
    assert "holds a pipeline that can't be read here" in note.message
    assert "query" in note.message


def unnamed() -> Pipeline:
    class Hidden(AwsCall):
        kind: Literal["hidden"] = "hidden"  # type: ignore[assignment]  # Another kind is meant.

    return Pipeline(name="p", workspace="s3://bucket/p", stages=[Hidden(name="ask", **QUERY)])


def untold(workflow: Workflow) -> list[str]:
    definition = stepfunctions.render(workflow)
    assert "\n---\n" not in str(definition["Comment"])
    return list(lacking(definition, workflow))


def test_a_pipeline_that_yaml_can_t_say_is_told() -> None:
    [told] = untold(unnamed().carried())
    assert "since YAML can't say it: stages.ask: its class" in told


def test_a_file_that_is_too_long_for_a_definition_is_told() -> None:
    data = {"description": "x" * 1_100_000}
    [told] = untold(replace(pipeline(job("fit")).lower(), origin=(data, {})))
    assert "since it would exceed AWS's 1 MiB with it" in told


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ((ROOT / "dags/digits.py").read_text(encoding="utf-8"), "digits.yaml"),
        ("from orchestration.airflow import dag\na = dag(name)", None),
        ("from airflow.sdk import dag\n@dag('x')\ndef f(): ...", None),
        ("(", None),
    ],
)
def test_a_dag_file_of_ours_names_its_pipeline(source: str, file: str | None) -> None:
    own = described(source)
    assert (own.file if own else None) == file


OWN = (
    '"""Our digits."""\nfrom airflow import DAG\nfrom orchestration.airflow import {0}\n'
    'BUCKET = "prod"\n{1}\n'
)


@pytest.mark.parametrize(
    ("name", "call", "told"),
    [
        ("dag", 'd = dag("digits.yaml")', {}),
        (
            "dag",
            'dag("digits.yaml", schedule="@daily", parameters={"bucket": BUCKET, **more}, **rest)',
            {
                "dag.schedule": "'@daily' is left out: it is not in digits.yaml",
                "dag.parameters.bucket": "BUCKET is left out: it is not in digits.yaml; give it to "
                "the runs, or as the default there",
                "dag.parameters": "**more is left out: it is not in digits.yaml",
                "dag(**rest)": "is left out: it is not in digits.yaml",
            },
        ),
        (
            "dag as made",
            'd: DAG = made(pipeline="digits.yaml", parameters=read())\nd.test()',
            {
                "made.parameters": "read() is left out: it is not in digits.yaml",
                "line 6": "d.test() is left out: it is not in digits.yaml",
            },
        ),
        (
            "task_group",
            'with DAG("nightly"):\n  task_group("digits.yaml", deferrable=False)',
            {
                "task_group.deferrable": "False is left out: it is not in digits.yaml",
                "line 5": "with DAG('nightly'): … is left out: it is not in digits.yaml",
            },
        ),
    ],
)
def test_all_that_a_dag_file_of_ours_says_beside_its_yaml_is_told(
    name: str, call: str, told: dict[str, str]
) -> None:
    own = described(OWN.replace("{0}", name).replace("{1}", call))
    assert own is not None
    assert own.file == "digits.yaml"
    constant = {"line 4": "BUCKET = 'prod' is left out: it is not in digits.yaml"}
    assert {note.path: note.message for note in own.notes} == {**told, **constant}
