"""Operators of the Amazon provider by their arguments: what becomes a stage, and what is told."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import botocore.session
import pytest
import yaml

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions
from orchestration.importing import Imported, from_dag
from orchestration.importing.dags import calls, operators
from orchestration.importing.dags.arguments import EVERYWHERE, NEEDLESS, left_out

ROLE = "arn:aws:iam::111122223333:role/r"
MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:m"
DAG = dedent(
    f"""\
    with DAG("many"):
        told = SqsPublishOperator(
            task_id="told", sqs_queue="https://sqs.us-east-1.amazonaws.com/111122223333/q",
            message_content="{{{{ params.words }}}}", delay_seconds=5,
        )
        noted = EventBridgePutEventsOperator(
            task_id="noted", entries=[{{"Source": "mine", "DetailType": "d", "Detail": "{{}}"}}]
        )
        started = StepFunctionStartExecutionOperator(
            task_id="started", state_machine_arn="{MACHINE}", state_machine_input={{"a": 1}},
        )
        batched = BatchOperator(
            task_id="batched", job_name="n", job_definition="d", job_queue="q",
            container_overrides={{"command": ["run"]}}, awslogs_enabled=True,
        )
        again = BatchOperator(task_id="again", job_name="n", job_definition="d", job_queue="q",
                              job_id="1234")
        built = SageMakerStartPipelineOperator(
            task_id="built", pipeline_name="p", pipeline_params={{"Epochs": "3"}}
        )
        followed = SageMakerPipelineSensor(task_id="followed", pipeline_exec_arn="x")
        registered = SageMakerRegisterModelVersionOperator(
            task_id="registered", image_uri="image", model_url="s3://b/model.tar.gz",
            package_group_name="g", model_approval=ApprovalStatus.APPROVED,
        )
        searched = SageMakerAutoMLOperator(
            task_id="searched", job_name="a", s3_input="s3://b/in", target_attribute="y",
            s3_output="s3://b/out", role_arn="{ROLE}", time_limit=600,
        )
        forgotten = SageMakerDeleteModelOperator(task_id="forgotten", config={{"ModelName": "m"}})
        emptied = S3DeleteObjectsOperator(task_id="emptied", bucket="b", keys=["a", "c"])
        swept = S3DeleteObjectsOperator(task_id="swept", bucket="b", prefix="old/")
        copied = S3CopyObjectOperator(
            task_id="copied", source_bucket_key="s3://b/one", dest_bucket_key="two",
            dest_bucket_name="c",
        )
        listed = S3ListOperator(task_id="listed", bucket="b", prefix="in/")
        ran = EcsRunTaskOperator(task_id="ran", cluster="c", task_definition="t", overrides={{}})
        came = S3KeySensor(task_id="came", bucket_key="s3://b/x")
        told >> built >> followed >> registered
    """
)


@pytest.fixture(scope="module")
def imported() -> Imported:
    return from_dag(DAG)


def test_requests_are_those_that_the_operators_send(imported: Imported) -> None:
    stages = imported.description["stages"]
    assert {
        name: (stage["operation"], stage["request"])
        for name, stage in stages.items()
        if stage["kind"] == "aws_call" and name != "searched"
    } == {
        "told": (
            "SendMessage",
            {
                "QueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/q",
                "MessageBody": {"parameter": "words"},
                "DelaySeconds": 5,
            },
        ),
        "noted": (
            "PutEvents",
            {"Entries": [{"Source": "mine", "DetailType": "d", "Detail": "{}"}]},
        ),
        "started": ("StartExecution", {"stateMachineArn": MACHINE, "input": '{"a": 1}'}),
        "batched": (
            "SubmitJob",
            {
                "jobName": "n",
                "jobDefinition": "d",
                "jobQueue": "q",
                "containerOverrides": {"command": ["run"]},
            },
        ),
        "built": (
            "StartPipelineExecution",
            {"PipelineName": "p", "PipelineParameters": [{"Name": "Epochs", "Value": "3"}]},
        ),
        "forgotten": ("DeleteModel", {"ModelName": "m"}),
        "emptied": (
            "DeleteObjects",
            {"Bucket": "b", "Delete": {"Objects": [{"Key": "a"}, {"Key": "c"}]}},
        ),
        "copied": ("CopyObject", {"Bucket": "c", "Key": "two", "CopySource": "b/one"}),
        "listed": ("ListObjectsV2", {"Bucket": "b", "Prefix": "in/"}),
    }
    registered = stages["registered"]
    assert (registered["kind"], registered["package_group"]) == ("model_registration", "g")
    assert registered["after"] == ["built"], "through the sensor, for whose end the stage waits"
    limit = stages["searched"]["request"]["AutoMLJobConfig"]["CompletionCriteria"]
    assert limit == {"MaxAutoMLJobRuntimeInSeconds": 600}
    polled = {name for name, stage in stages.items() if "poll" in stage}
    assert polled == {"started", "batched", "built", "searched"}


def test_an_execution_is_stopped_under_a_token_of_the_length_that_sagemaker_takes(
    imported: Imported,
) -> None:
    stop = imported.description["stages"]["built"]["poll"]["stop"]["request"]
    assert stop["PipelineExecutionArn"] == {"ref": "built.execution"}
    [words, execution] = stop["ClientRequestToken"]["join"]
    assert execution == {"arn_name": {"ref": "built.execution"}}
    shape = botocore.session.get_session().get_service_model("sagemaker")
    token = shape.operation_model("StopPipelineExecution").input_shape.members["ClientRequestToken"]
    # The identifier of an execution has twelve characters.
    assert token.metadata["min"] <= len(words) <= token.metadata["max"] - 12


def test_they_run_on_both_backends(imported: Imported) -> None:
    description = {**yaml.safe_load(imported.yaml()), "region": "us-east-1"}
    workflow = Pipeline.parse(description).lower()
    assert stepfunctions.render(workflow)["States"]
    assert airflow.render(workflow).tasks


def test_what_no_stage_does_is_told_by_name_with_a_way_out(imported: Imported) -> None:
    told = {note.path.partition(" ")[0]: note.message for note in imported.notes}
    left = {name: told[name] for name in ("ran", "came", "followed", "swept", "again")}
    assert left["ran"].startswith("is left out: no stage does what this EcsRunTaskOperator does; ")
    assert left["came"].endswith("; a trigger starts a run when one comes")
    assert left["followed"] == "is left out: the stage that starts it waits for its end"
    assert "S3DeleteObjectsOperator" in left["swept"]
    assert "BatchOperator" in left["again"]
    settings = {note.path.rpartition(".")[2]: note.message for note in imported.notes}
    assert settings["awslogs_enabled"] == "is left out"
    assert settings["wait_for_completion"] == "the stage waits for its end"


def provided() -> Iterator[tuple[str, set[str]]]:
    """The operators and sensors of the installed provider, with their own arguments."""
    amazon = pytest.importorskip("airflow.providers.amazon")
    for path in Path(next(iter(amazon.__path__)), "aws").glob("[os]*s/*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, set(_arguments(node))


def _arguments(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            yield from (a.arg for a in (*each.args.args, *each.args.kwonlyargs))


def test_the_provider_has_these_operators_with_these_arguments() -> None:
    known: Mapping[str, set[str]] = dict(provided())
    named: dict[str, Any] = {name: each.fields for name, each in calls.REQUESTS.items()}
    named["S3CopyObjectOperator"] = [
        f"{side}_bucket_{part}" for side in ("source", "dest") for part in ("name", "key")
    ]
    for operator, arguments in named.items():
        assert {*arguments} <= known[operator], operator
    assert {*calls.AWAITED, *calls.WHY, *operators.SAGEMAKER} <= known.keys()


LEAST: dict[str, dict[str, Any]] = {
    **{operator: {"config": {"A": 1}} for operator in operators.SAGEMAKER},
    "LambdaInvokeFunctionOperator": {"function_name": "f"},
    "SageMakerRegisterModelVersionOperator": {"image_uri": "i", "model_url": "u"},
    "SageMakerAutoMLOperator": {name: name for name in operators.AUTO_ML[:5]},
    **{operator: {} for operator in calls.REQUESTS},
    "BatchOperator": {"job_name": "n", "job_definition": "d", "job_queue": "q"},
    "S3DeleteObjectsOperator": {"bucket": "b", "keys": "k"},
    "S3CopyObjectOperator": {
        "source_bucket_name": "b", "source_bucket_key": "k",
        "dest_bucket_name": "c", "dest_bucket_key": "l",
    },
}  # fmt: skip
"""The operators known, with the arguments that they need."""
OBJECTS = ("config", "payload", "extras", "tags", "message_attributes", "pipeline_params")


@pytest.mark.parametrize("operator", LEAST)
def test_every_argument_is_sent_or_told_or_not_needed(operator: str) -> None:
    least = LEAST[operator]
    known = dict(provided())[operator] - {"self"}
    told: dict[str, list[str]] = {}
    for name in known:
        value = {"B": "c"} if name in OBJECTS else True if name == "compressed_input" else "x"
        given = {**least, name: value}
        told[name] = [
            *(["sent"] if steps(operator, given) != steps(operator, least) else []),
            *(["told"] if name in left_out(operator, given) else []),
            *(["not needed"] if name in (*EVERYWHERE, *NEEDLESS.get(operator, ())) else []),
        ]
    assert {name: ways for name, ways in told.items() if len(ways) != 1} == {}
    assert {*NEEDLESS.get(operator, ())} <= known


def steps(operator: str, arguments: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(operators.steps_of(operator, arguments))


def only(operator: str, arguments: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the stage of a DAG of one operator, and what is told of its arguments."""
    imported = from_dag(f'with DAG("one"):\n    x = {operator}(task_id="x", {arguments})\n')
    places = {note.path.rpartition(".")[2]: note.message for note in imported.notes}
    return imported.description["stages"]["x"], places


def test_attributes_of_a_message_have_types() -> None:
    attributes = """{"a": "b", "n": 3, "many": ["x", 1], "given": "{{ params.who }}"}"""
    stage, _ = only(
        "SnsPublishOperator",
        f'target_arn="{ROLE}", message="m", message_attributes={attributes}',
    )
    assert stage["request"]["MessageAttributes"] == {
        "a": {"DataType": "String", "StringValue": "b"},
        "n": {"DataType": "Number", "StringValue": "3"},
        "many": {"DataType": "String.Array", "StringValue": '["x", 1]'},
        "given": {"DataType": "String", "StringValue": {"parameter": "who"}},
    }
    stage, told = only(
        "SnsPublishOperator",
        f'target_arn="{ROLE}", message="m", message_attributes={{"a": True}}',
    )
    assert "MessageAttributes" not in stage["request"]
    assert told["message_attributes"] == "is left out"


def test_what_a_job_and_an_experiment_have_more_is_sent() -> None:
    needed = ", ".join(f'{name}="s3://b/{name}"' for name in operators.AUTO_ML[1:4])
    extras = """{"ProblemType": "Regression", "AutoMLJobObjective": {"MetricName": "MSE"}}"""
    job = f'job_name="j", role_arn="{ROLE}", {needed}, extras={extras}'
    request = only("SageMakerAutoMLOperator", job)[0]["request"]
    assert request["ProblemType"] == "Regression"
    assert request["AutoMLJobObjective"] == {"MetricName": "MSE"}
    tagged, _ = only("SageMakerCreateExperimentOperator", 'name="e", tags={"team": "nlp"}')
    assert tagged["request"]["Tags"] == [{"Key": "team", "Value": "nlp"}]


def test_the_version_of_a_copied_object_may_be_known_by_a_run_only() -> None:
    where = 'source_bucket_key="s3://b/one", dest_bucket_key="s3://c/two"'
    copied, _ = only(
        "S3CopyObjectOperator", f'{where}, source_version_id="{{{{ params.v }}}}", acl_policy="x"'
    )
    assert copied["request"] == {
        "Bucket": "c",
        "Key": "two",
        "CopySource": {"join": ["b/one?versionId=", {"parameter": "v"}]},
    }
    literal, told = only(
        "S3CopyObjectOperator", f'{where}, source_version_id="v1", acl_policy="public-read"'
    )
    assert literal["request"]["CopySource"] == "b/one?versionId=v1"
    assert told["acl_policy"] == "is left out"
