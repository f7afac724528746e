"""DAG files become pipelines of what their operators say; the rest is told."""

from __future__ import annotations

from textwrap import dedent

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import airflow, stepfunctions
from orchestration.importing import Imported, from_dag

SOURCE = dedent(
    """\
    from airflow.sdk import DAG, task, chain
    from airflow.providers.amazon.aws.operators.athena import AthenaOperator
    from airflow.providers.amazon.aws.operators.sagemaker import (
        SageMakerEndpointOperator, SageMakerTrainingOperator, SageMakerTransformOperator,
    )

    BUCKET = "my-bucket"
    ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"
    IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
    RESOURCES = {"InstanceCount": 1, "InstanceType": "{{ params.machine }}", "VolumeSizeInGB": 10}
    TRAINING = {
        "TrainingJobName": "train-{}".format("{{ ts_nodash }}"),
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "ResourceConfig": RESOURCES,
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/models"},
        "InputDataConfig": [{
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": "s3://" + BUCKET + "/data/{{ ds }}",
                "S3DataDistributionType": "FullyReplicated",
            }},
        }],
    }
    MODEL = {
        "ModelName": "{{ params.model }}",
        "ExecutionRoleArn": ROLE,
        "PrimaryContainer": {
            "Image": IMAGE,
            "ModelDataUrl": "{{ ti.xcom_pull(task_ids='train')['Training']"
                            "['ModelArtifacts']['S3ModelArtifacts'] }}",
        },
    }
    SCORING = {
        "TransformJobName": "score",
        "ModelName": "{{ params.model }}",
        "TransformInput": {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}}},
        "TransformOutput": {"S3OutputPath": "s3://b/out"},
        "TransformResources": {"InstanceCount": 1, "InstanceType": "ml.m5.large"},
    }

    with DAG("nightly_training", schedule="0 6 * * *", catchup=False) as dag:

        @task
        def begin():
            ...

        count = AthenaOperator(
            task_id="count", query="SELECT 1", database="d", retries=3,
            output_location=f"s3://{BUCKET}/a",
        )
        train = SageMakerTrainingOperator(
            task_id="train", config=TRAINING, wait_for_completion=False
        )
        both = {"Model": MODEL, "Transform": SCORING}
        score = SageMakerTransformOperator(task_id="score", config=both)
        begin() >> [count] >> train
        score << train
    """
)


@pytest.fixture(scope="module")
def imported() -> Imported:
    return from_dag(SOURCE)


def test_operators_become_stages_for_both_backends(imported: Imported) -> None:
    workflow = Pipeline.parse(yaml.safe_load(imported.yaml())).lower()
    assert stepfunctions.render(workflow)["States"]
    assert airflow.render(workflow).tasks
    assert imported.description["name"] == "nightly-training"
    stages = imported.description["stages"]
    assert {name: stage["kind"] for name, stage in stages.items()} == {
        "count": "aws_call",
        "train": "training_job",
        "score_model": "aws_call",
        "score": "batch_transform",
    }
    assert [stages[name].get("after") for name in stages] == [
        None,
        ["count"],
        ["train"],
        ["score_model"],
    ]


def test_names_texts_and_templates_are_followed(imported: Imported) -> None:
    stages = imported.description["stages"]
    train = stages["train"]
    assert train["cluster"]["instance_type"] == {"parameter": "machine"}
    assert train["output"]["uri"] == "s3://my-bucket/models"
    assert train["channels"]["train"]["uri"] == {
        "join": ["s3://my-bucket/data/", {"parameter": "ds"}]
    }
    model = stages["score_model"]["request"]
    assert model["PrimaryContainer"]["ModelDataUrl"] == {"ref": "train.model_artifacts"}
    assert model["ModelName"] == stages["score"]["model_name"] == {"parameter": "model"}
    assert stages["count"]["request"] == {
        "QueryString": "SELECT 1",
        "QueryExecutionContext": {"Database": "d"},
        "ResultConfiguration": {"OutputLocation": "s3://my-bucket/a"},
    }


def test_all_that_is_otherwise_is_told(imported: Imported) -> None:
    lines = {number: line for number, line in enumerate(SOURCE.splitlines(), 1)}
    at = {
        name: n
        for n, line in lines.items()
        for name in ("begin", "count", "train", "score")
        if line.strip().startswith((f"def {name}", f"{name} = "))
    }
    assert {note.path: note.message for note in imported.notes} == {
        f"begin (line {at['begin']})": "is left out: no stage does what this function does",
        f"count (line {at['count']}).retries": "is left out",
        f"score (line {at['score']})": (
            "score takes its data for a folder, and fails if there are fewer predictions than "
            "objects"
        ),
        f"train (line {at['train']}).wait_for_completion": "the stage waits for its end",
        f"train (line {at['train']}).config.InputDataConfig[0].DataSource.S3DataSource.S3Uri"
        ".Std:Join.Values[2]": (
            "nothing stands for {{ ds }}; each run must be given the parameter ds"
        ),
    }


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(:", "line 1: is no Python"),
        ("x = 1", "has no operator of the Amazon provider"),
        ("SageMakerTrainingOperator(task_id='t', config=make())", "has no operator"),
    ],
)
def test_what_has_no_operator_is_refused(source: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        from_dag(source)


def test_chains_and_methods_are_orders() -> None:
    publish = (
        "SnsPublishOperator(task_id='{0}', target_arn='arn:aws:sns:us-east-1:1:t', message='m')"
    )
    source = "\n".join(
        [
            *(f"{name} = {publish.format(name)}" for name in "abcd"),
            "e = EmptyOperator(task_id='e')",
            "chain(a, e, [b, c])",
            "b.set_downstream(d)",
            "d.set_upstream(c)",
        ]
    )
    stages = from_dag(source).description["stages"]
    assert {name: stage.get("after") for name, stage in stages.items()} == {
        "a": None,
        "b": ["a"],
        "c": ["a"],
        "d": ["b", "c"],
    }


def test_a_file_is_not_run() -> None:
    topic = "arn:aws:sns:us-east-1:1:t"
    source = f"raise SystemExit\nSnsPublishOperator(task_id='a', target_arn='{topic}', message=f())"
    stages = from_dag(source).description["stages"]
    assert stages["a"]["request"] == {"TopicArn": topic, "Message": {"parameter": "f"}}


TOPIC = "arn:aws:sns:us-east-1:1:t"


def published(message: str, before: str = "", after: str = "") -> Imported:
    """Import a file with one message of an expression."""
    call = f"a = SnsPublishOperator(task_id='a', target_arn='{TOPIC}', message={message})"
    return from_dag("\n".join([before, call, after]))


def message_of(imported: Imported) -> object:
    return imported.description["stages"]["a"]["request"]["Message"]


@pytest.mark.parametrize(
    ("message", "before", "expected"),
    [
        ("'1' + '2'", "", "12"),
        ("f'{5} of'", "", "5 of"),
        ("f'{5:03d}'", "", {"parameter": "f_5_03d"}),
        ("x", "x = 'one'", "one"),
        ("x", "x = 'one'\nx = 'two'", {"parameter": "x"}),
        ("x", "x = 'one'\nx += 'two'", {"parameter": "x"}),
        ("x['k']", "x = {'k': 'one'}", {"parameter": "x_k"}),
    ],
)
def test_only_what_has_one_value_is_followed(message: str, before: str, expected: object) -> None:
    assert message_of(published(message, before)) == expected


def test_dictionaries_are_merged_and_changed_ones_are_not_followed() -> None:
    source = "B = {'RoleArn': 'r'}\n"
    call = "t = SageMakerModelOperator(task_id='t', config={**B, 'ModelName': 'm'})"
    other = f"SnsPublishOperator(task_id='o', target_arn='{TOPIC}', message='m')"
    changed = from_dag(f"{source}B['x'] = 1\n{call}\n{other}")
    assert list(changed.description["stages"]) == ["o"]
    assert any("SageMakerModelOperator" in note.message for note in changed.notes)
    model = "'PrimaryContainer': {'Image': 'i', 'ModelDataUrl': 's3://b/m'}, 'ModelName': 'm'"
    merged = call.replace("'ModelName': 'm'", model)
    whole = from_dag(f"B = {{'ExecutionRoleArn': '{ROLE}'}}\n{merged}")
    assert whole.description["stages"]["t"]["request"]["ExecutionRoleArn"] == ROLE


ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"


def test_tasks_of_loops_and_orders_that_nobody_reads_are_told() -> None:
    loop = f"SnsPublishOperator(task_id='l', target_arn='{TOPIC}', message='m')"
    imported = published("'m'", f"for n in [1, 2]:\n    {loop}", "a >> group")
    messages = [note.message for note in imported.notes]
    assert "tasks in a loop are taken once, as they stand" in messages
    assert "the order by group is left out" in messages


def test_tasks_of_one_name_are_numbered() -> None:
    imported = published(
        "'m'", f"SnsPublishOperator(task_id='a', target_arn='{TOPIC}', message='x')"
    )
    assert sorted(imported.description["stages"]) == ["a", "a_2"]


def test_groups_stand_for_their_tasks() -> None:
    publish = f"SnsPublishOperator(task_id='{{0}}', target_arn='{TOPIC}', message='m')"
    source = "\n".join(
        [
            "with TaskGroup('g') as g:",
            *(f"    {name} = {publish.format(name)}" for name in "ab"),
            "    a >> b",
            "@task_group()",
            "def more():",
            f"    c = {publish.format('c')}",
            f"d = {publish.format('d')}",
            "last = g >> more()",
            "last >> d",
        ]
    )
    stages = from_dag(source).description["stages"]
    assert {name: stages[name].get("after") for name in "abcd"} == {
        "a": None,
        "b": ["a"],
        "c": ["a", "b"],
        "d": ["c"],
    }


def test_tasks_that_a_function_makes_are_told() -> None:
    publish = f"SnsPublishOperator(task_id='t', target_arn='{TOPIC}', message='m')"
    imported = published("'m'", f"def make(n):\n    return {publish}\nmake(1)\nmake(2)")
    text = "tasks in a function that is called 2 times are taken once, as they stand"
    assert text in [note.message for note in imported.notes]


def test_a_second_dag_of_a_file_is_told() -> None:
    imported = published("'m'", "DAG('one')", "DAG('two')")
    assert imported.notes[-1].message == (
        "is another DAG; the tasks of both are taken together, and its schedule"
    )


def test_a_connection_and_settings_of_the_dag_are_told() -> None:
    call = "SnsPublishOperator(task_id='b', target_arn='t', message='m', aws_conn_id='other')"
    imported = published("'m'", f"DAG('d', dagrun_timeout=1)\n{call}")
    assert {"DAG.dagrun_timeout", "b (line 2).aws_conn_id"} <= {n.path for n in imported.notes}
