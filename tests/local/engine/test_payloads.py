"""What states pass on: literals, blobs, and the limit of 256 KiB."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.local.conftest import BUCKET, read
from tests.local.engine.machines import SDK, created, jsonata, output_of, run_of

HARD = 'it\'s "so" \\ and\n\ttab é 😀 / $.x'


def test_literals_keep_their_characters(aws: EmbeddedAws) -> None:
    first = {
        "Type": "Pass",
        "Assign": {"v": HARD, "list": [HARD, {HARD: HARD}], "path": '$["a\\b"]'},
        "Output": {HARD: HARD},
        "Next": "Ünd",
    }
    last = {
        "Type": "Pass",
        "Output": {
            "v": "{% $v %}",
            "list": "{% $list %}",
            "path": "{% $path %}",
            "in": "{% $states.input %}",
        },
        "End": True,
    }
    assert output_of(aws, jsonata(A=first, Ünd=last)) == {
        "v": HARD,
        "list": [HARD, {HARD: HARD}],
        "path": '$["a\\b"]',
        "in": {HARD: HARD},
    }


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ("text data", '"text data"'),
        ('a "quoted" é', '"a \\"quoted\\" é"'),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([1, 2], "[1,2]"),
        (0, "0"),
        (True, "true"),
    ],
)
def test_a_blob_is_the_json_of_what_a_state_gives(aws: EmbeddedAws, body: Any, stored: str) -> None:
    task = {
        "Type": "Task",
        "Resource": SDK + "s3:putObject",
        "Arguments": {"Bucket": BUCKET, "Key": "engine/blob", "Body": body},
        "End": True,
    }
    assert run_of(aws, jsonata(A=task))["status"] == "SUCCEEDED"
    assert read(aws, "engine/blob").decode() == stored


def test_an_object_for_a_string_is_sent_as_its_json(aws: EmbeddedAws) -> None:
    inner = created(aws, jsonata(A={"Type": "Succeed", "Output": "{% $states.input.a[0] %}"}))
    task = {
        "Type": "Task",
        "Resource": SDK + "sfn:startExecution",
        "Arguments": {"StateMachineArn": inner, "Input": {"a": ["é"]}},
        "Output": {"arn": "{% $states.result.ExecutionArn %}"},
        "End": True,
    }
    arn = output_of(aws, jsonata(A=task))["arn"]
    described = aws.client("stepfunctions").describe_execution(executionArn=arn)
    assert described["input"] == '{"a":["é"]}'


@pytest.mark.parametrize(
    ("characters", "status"), [(262_142, "SUCCEEDED"), (262_143, "FAILED")], ids=["fits", "not"]
)
@pytest.mark.parametrize("field", ["Output", "Assign"])
def test_states_pass_on_256_kib_and_no_more(
    aws: EmbeddedAws, field: str, characters: int, status: str
) -> None:
    # With the quotes around it, or as the whole of `{"v":"…"}`.
    count = characters if field == "Output" else characters - 6
    text = f"{{% $pad('', {count}, 'x') %}}"
    value = text if field == "Output" else {"v": text}
    last = {"Type": "Pass", "Output": 1, "End": True}
    run = run_of(aws, jsonata(A={"Type": "Pass", field: value, "Next": "B"}, B=last))
    assert run["status"] == status, run.get("cause")
    if status == "FAILED":
        assert run["error"] == "States.DataLimitExceeded"


def test_an_intrinsic_function_takes_the_characters_of_its_json(aws: EmbeddedAws) -> None:
    split = "States.StringSplit('a\nb\tc', '\n')"
    parsed = """States.StringToJson('{"a": 1}')"""
    state = {"Type": "Pass", "Parameters": {"s.$": split, "p.$": parsed}, "End": True}
    definition = {"StartAt": "A", "States": {"A": state}}
    assert output_of(aws, definition) == {"s": ["a", "b\tc"], "p": {"a": 1}}
