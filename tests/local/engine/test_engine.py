"""Step Functions: every fault of the stock engine that is mended, as a definition and its end."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws, Fault
from tests.local.conftest import BUCKET, ROLE, put, tar_gz, training_request, wait
from tests.local.engine.machines import (
    SDK,
    created,
    ended,
    jsonata,
    output_of,
    passing,
    run_of,
    started,
)

SLOW = tar_gz({"train.py": "import time; print('ready', flush=True); time.sleep(60)"})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("$partition([1..9], 4)", [[1, 2, 3, 4], [5, 6, 7, 8], [9]]),
        ("$range(1, 9, 2)", [1, 3, 5, 7, 9]),
        ("$range(9, 1, -4)", [9, 5, 1]),
        ("$hash('a', 'SHA-1')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("$random(1) = $random(1)", True),
        ("$length($uuid())", 36),
        ("""$parse('{"a": [1, null]}')""", {"a": [1, None]}),
        ("4 / 2", 2),
        ("$states.input.none", None),
        ("$states.input.list[$ > 1]", [2, 3]),
        ("$states.input.text", 'a "quoted" \\ line\n\u00e9 {{ x }} {% y %}'),
        ("$exists($states.errorOutput)", False),
        ("$states.context.Execution.Input.list[0]", 1),
    ],
)
def test_expressions_have_the_value_that_aws_gives(
    aws: EmbeddedAws, expression: str, value: Any
) -> None:
    data = {"none": None, "list": [1, 2, 3], "text": 'a "quoted" \\ line\n\u00e9 {{ x }} {% y %}'}
    assert output_of(aws, passing({"v": f"{{% {expression} %}}"}), data) == {"v": value}


@pytest.mark.parametrize(
    "expression", ["$states.input.missing", "$nope", "$eval('1')", "$hash('a', 'x')", "$sum"]
)
def test_what_has_no_value_is_a_query_evaluation_error(aws: EmbeddedAws, expression: str) -> None:
    run = run_of(aws, passing({"v": f"{{% {expression} %}}"}))
    assert (run["status"], run["error"]) == ("FAILED", "States.QueryEvaluationError")


def test_a_condition_must_be_true_or_false(aws: EmbeddedAws) -> None:
    choice = {"Type": "Choice", "Choices": [{"Condition": "{% 'yes' %}", "Next": "B"}]}
    definition = jsonata(A=choice | {"Default": "B"}, B={"Type": "Succeed"})
    assert run_of(aws, definition)["error"] == "States.QueryEvaluationError"


def test_variables_keep_every_character_and_count_from_the_next_state(aws: EmbeddedAws) -> None:
    text = 'it\'s "so" \\ far: \n ${x} {% y %}'
    first = {
        "Type": "Pass",
        "Assign": {"v": "{% $states.input %}", "old": "{% $exists($v) %}", "n": None},
        "Output": {"seen": "{% $exists($v) %}"},
        "Next": "B",
    }
    second = {
        "Type": "Pass",
        "Output": {
            "v": "{% $v %}",
            "old": "{% $old %}",
            "n": "{% $n %}",
            "in": "{% $states.input %}",
        },
        "End": True,
    }
    assert output_of(aws, jsonata(A=first, B=second), text) == {
        "v": text,
        "old": False,
        "n": None,
        "in": {"seen": False},
    }


def test_query_languages_do_not_leak_between_definitions(aws: EmbeddedAws) -> None:
    path = {"StartAt": "A", "States": {"A": {"Type": "Pass", "OutputPath": "$.a", "End": True}}}
    bad = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": {"Type": "Nonsense"}}}
    with pytest.raises(ClientError, match="InvalidDefinition"):
        created(aws, bad)
    jobs = [path, passing("{% $states.input.a %}")] * 4
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda one: output_of(aws, one, {"a": 7}), jobs)) == [7] * 8


def test_waits_and_retries_keep_simulated_time(aws: EmbeddedAws) -> None:
    get = {
        "Type": "Task",
        "Resource": SDK + "s3:getObject",
        "Arguments": {"Bucket": BUCKET, "Key": "not-there"},
        "Retry": [
            {"ErrorEquals": ["S3.NoSuchKeyException"], "IntervalSeconds": 30, "MaxAttempts": 2}
        ],
        "Catch": [
            {"ErrorEquals": ["States.ALL"], "Next": "B", "Output": "{% $states.errorOutput %}"}
        ],
        "End": True,
    }
    before = time.monotonic()
    output = output_of(
        aws,
        jsonata("W", W={"Type": "Wait", "Seconds": 100, "Next": "A"}, A=get, B={"Type": "Succeed"}),
    )
    assert output["Error"] == "S3.NoSuchKeyException"
    # 100 s + 30 s + 60 s at 0.005 is 0.95 s.
    assert time.monotonic() - before > 0.9


@pytest.mark.parametrize(
    ("resource", "arguments", "error"),
    [
        ("sagemaker:describeEndpoint", {"EndpointName": "none"}, "SageMaker.SageMakerException"),
        ("fsx:describeFileSystems", {"FileSystemIds": ["fs-0123456789abcdef0"]},
         "FSx.FileSystemNotFoundException"),
        ("iam:getRole", {"RoleName": "none"}, "Iam.NoSuchEntityException"),
        ("sfn:describeExecution", {"ExecutionArn": f"{ROLE.replace('iam:', 'states:us-east-1')}"},
         "Sfn.InvalidArnException"),
        ("sagemakerruntime:invokeEndpoint", {"EndpointName": "none", "Body": {"a": 1}},
         "SageMakerRuntime.ValidationErrorException"),
        ("scheduler:getSchedule", {"Name": "none"}, "Scheduler.ResourceNotFoundException"),
    ],
)  # fmt: skip
def test_errors_of_the_sdk_integrations_have_aws_s_names(
    aws: EmbeddedAws, resource: str, arguments: dict[str, Any], error: str
) -> None:
    task = {"Type": "Task", "Resource": SDK + resource, "Arguments": arguments, "End": True}
    assert run_of(aws, jsonata(A=task))["error"] == error


def test_a_body_is_a_string_and_times_are_iso(aws: EmbeddedAws) -> None:
    put(aws, "engine/report.json", '{"loss": 0.5}')
    task = {
        "Type": "Task",
        "Resource": SDK + "s3:getObject",
        "Arguments": {"Bucket": BUCKET, "Key": "engine/report.json"},
        "Output": {
            "loss": "{% $parse($states.result.Body).loss %}",
            "at": "{% $states.result.LastModified %}",
        },
        "End": True,
    }
    output = output_of(aws, jsonata(A=task))
    assert output["loss"] == 0.5
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", output["at"])


def _training_task(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
        "Arguments": training_request(name, script),
        "End": True,
        **more,
    }


def test_sync_retries_catch_the_error_and_return_the_job(aws: EmbeddedAws) -> None:
    script = put(aws, "code/quick.tar.gz", tar_gz({"train.py": "print('done')"}))
    aws.inject(Fault("sagemaker", "CreateTrainingJob", "ThrottlingException", "Rate exceeded"))
    retry = [{"ErrorEquals": ["SageMaker.AmazonSageMakerException"], "IntervalSeconds": 1}]
    task = _training_task("sync-retry", script, Retry=retry)
    output = output_of(aws, jsonata(A=task))
    assert output["TrainingJobStatus"] == "Completed"
    assert isinstance(output["CreationTime"], int)


def test_a_failed_job_and_a_taken_name_have_different_errors(aws: EmbeddedAws) -> None:
    script = put(aws, "code/fails.tar.gz", tar_gz({"train.py": "raise SystemExit(4)"}))
    run = run_of(aws, jsonata(A=_training_task("sync-fails", script)))
    assert run["error"] == "States.TaskFailed"
    assert json.loads(run["cause"])["TrainingJobStatus"] == "Failed"
    again = run_of(aws, jsonata(A=_training_task("sync-fails", script)))
    assert again["error"] == "SageMaker.ResourceInUseException"


@pytest.mark.parametrize("how", ["stopped", "sibling"])
def test_a_job_is_stopped_with_its_execution(aws: EmbeddedAws, how: str) -> None:
    script = put(aws, "code/slow.tar.gz", SLOW)
    task = _training_task(f"sync-{how}", script)
    looks = {
        "Type": "Task",
        "Resource": SDK + "sagemaker:listTrainingJobs",
        "Arguments": {"NameContains": f"sync-{how}", "MaxResults": 1},
        "Output": "{% $count($states.result.TrainingJobSummaries) %}",
        "Next": "C",
    }
    choices = [{"Condition": "{% $states.input > 0 %}", "Next": "F"}]
    fails = {
        "L": looks,
        "C": {"Type": "Choice", "Choices": choices, "Default": "W"},
        "W": {"Type": "Wait", "Seconds": 20, "Next": "L"},
        "F": {"Type": "Fail"},
    }
    branches = [
        {"StartAt": "A", "States": {"A": task}},
        {"StartAt": "L", "States": fails},
    ]
    parallel = jsonata(P={"Type": "Parallel", "Branches": branches, "End": True}, first="P")
    execution = started(aws, parallel if how == "sibling" else jsonata(A=task))
    sagemaker = aws.client("sagemaker")
    wait(
        lambda: {"jobs": sagemaker.list_training_jobs(NameContains=f"sync-{how}")},
        lambda now: bool(now["jobs"]["TrainingJobSummaries"]),
    )
    if how == "stopped":
        aws.client("stepfunctions").stop_execution(executionArn=execution)
    assert ended(aws, execution)["status"] == ("ABORTED" if how == "stopped" else "FAILED")
    job = wait(
        lambda: sagemaker.describe_training_job(TrainingJobName=f"sync-{how}"),
        lambda job: job["TrainingJobStatus"] == "Stopped",
    )
    assert job["SecondaryStatus"] == "Stopped"


def test_wildcards_match_what_aws_says_they_match(aws: EmbeddedAws) -> None:
    big = jsonata(
        A={
            "Type": "Pass",
            "Output": "{% $join($map([1..30000], function($i) { '0123456789' })) %}",
            "End": True,
        }
    )
    run = run_of(aws, big)
    assert run["error"] == "States.DataLimitExceeded"
    query = {
        "Type": "Task",
        "Resource": SDK + "s3:listBuckets",
        "Arguments": {"Prefix": "{% $states.input.missing %}"},
        "Catch": [{"ErrorEquals": ["States.TaskFailed"], "Next": "B"}],
        "End": True,
    }
    assert run_of(aws, jsonata(A=query, B={"Type": "Succeed"}))["status"] == "SUCCEEDED"


def test_a_token_that_never_comes_is_a_timeout(aws: EmbeddedAws) -> None:
    put_events = {
        "Type": "Task",
        "Resource": "arn:aws:states:::events:putEvents.waitForTaskToken",
        "Arguments": {
            "Entries": [
                {
                    "Source": "a",
                    "DetailType": "b",
                    "Detail": {"token": "{% $states.context.Task.Token %}"},
                }
            ]
        },
        "TimeoutSeconds": 100,
        "End": True,
    }
    assert run_of(aws, jsonata(A=put_events))["error"] == "States.Timeout"


def test_an_execution_can_start_another_and_have_no_name(aws: EmbeddedAws) -> None:
    inner = created(aws, passing({"doubled": "{% $states.input.n * 2 %}"}))
    outer = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": inner, "Input": {"n": 21}},
        "Output": "{% $states.result.Output %}",
        "End": True,
    }
    assert output_of(aws, jsonata(A=outer)) == {"doubled": 42}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (jsonata(A={"Type": "Pass", "Next": "Gone"}), "MISSING_TRANSITION_TARGET"),
        (jsonata("Z", A={"Type": "Succeed"}), "MISSING_TRANSITION_TARGET"),
        (jsonata("x" * 81, **{"x" * 81: {"Type": "Succeed"}}), "longer than 80"),
        (jsonata(A={"Type": "Task", "Resource": SDK + "sagemakr:createModel", "End": True}),
         "not recognized"),
        (jsonata(A={"Type": "Task", "Resource": SDK + "s3:getObjekt", "End": True}),
         "not recognized"),
        (jsonata(A={"Type": "Task", "Resource": "arn:aws:states:::sagemaker:createEndpoint.sync",
                     "End": True}), "not recognized"),
    ],
)  # fmt: skip
def test_bad_definitions_are_refused(
    aws: EmbeddedAws, definition: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError) as raised:
        created(aws, definition)
    assert message in raised.value.response["Error"]["Message"]


def test_a_map_runs_its_items_and_keeps_their_order(aws: EmbeddedAws) -> None:
    each = jsonata(A={"Type": "Pass", "Output": "{% $states.input * $factor %}", "End": True})
    processor = {key: each[key] for key in ("StartAt", "States")}
    definition = jsonata(
        "F",
        F={"Type": "Pass", "Assign": {"factor": 3}, "Next": "M"},
        M={
            "Type": "Map",
            "Items": "{% [1, 2, 3] %}",
            "MaxConcurrency": 2,
            "ItemProcessor": {**processor, "ProcessorConfig": {"Mode": "INLINE"}},
            "End": True,
        },
    )
    assert output_of(aws, definition) == [3, 6, 9]


@pytest.mark.parametrize("output", ["a text", None, 1.5, ["é"]])
def test_an_output_is_told_as_json(aws: EmbeddedAws, output: Any) -> None:
    assert output_of(aws, passing(output)) == output


def test_numbers_are_read_as_json_has_them(aws: EmbeddedAws) -> None:
    values = [1e-05, -2.5e-07, 1e22, 10, "1e-05", 'a "quoted\\" 1e-05', "e01"]
    assert output_of(aws, passing(values)) == values
