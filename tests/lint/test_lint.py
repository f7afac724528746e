"""Faults that are planted in definitions that work are found; what works has no finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.lint import RULES, check, lint
from tests.lint.definitions import WORKING
from tests.lint.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]


def _holder(value: Any, pointer: str) -> Any:
    """Return what holds the place that a finding names."""
    for part in pointer.split("/")[1:-1]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


@pytest.mark.parametrize("name", WORKING)
def test_a_definition_that_works_has_no_finding(name: str) -> None:
    assert check(WORKING[name]) == []


@pytest.mark.parametrize("name", WORKING)
def test_what_faults_are_planted_in_satisfies_the_public_validators(
    name: str, asl_validators: Callable[[dict[str, Any]], list[dict[str, str]]]
) -> None:
    assert asl_validators(WORKING[name]) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    planted = fault.planted()
    findings = check(planted)
    assert fault.rule in {finding.rule for finding in findings}
    for finding in findings:
        assert _holder(planted, finding.path) is not None


def test_there_are_faults_of_many_kinds() -> None:
    assert len({fault.kind for fault in FAULTS}) == len(FAULTS) >= 60


def test_each_rule_has_a_fault_that_it_finds() -> None:
    of_files = {"duplicate-key", "not-a-state-machine"}
    assert {fault.rule for fault in FAULTS} == set(RULES) - of_files


def test_yaml_reads_as_json_does() -> None:
    planted = FAULTS[0].planted()
    assert lint(yaml.safe_dump(planted), is_yaml=True) == lint(json.dumps(planted)) != []


@pytest.mark.parametrize("is_yaml", [False, True])
def test_a_key_that_stands_twice_is_found(is_yaml: bool) -> None:
    text = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}, "A": {"Type": "Fail"}}}'
    (finding,) = lint(text, is_yaml=is_yaml)
    assert finding.rule == "duplicate-key"
    assert "'A'" in finding.message


def test_a_state_may_be_named_no_in_yaml() -> None:
    rule = "{Variable: $.a, IsNull: true, Next: Yes}"
    states = f"No: {{Type: Choice, Choices: [{rule}], Default: Yes}}, Yes: {{Type: Succeed}}"
    assert lint(f"{{StartAt: No, States: {{{states}}}}}", is_yaml=True) == []


def test_what_is_filled_in_when_deploying_is_no_fault() -> None:
    request = {"FunctionName": "${Function}", "Payload": {"bucket": "{% '${Bucket}' & $n %}"}}
    state = {
        "Type": "Task",
        "QueryLanguage": "JSONata",
        "Resource": "arn:${AWS::Partition}:states:::lambda:invoke",
        "Arguments": request,
        "TimeoutSeconds": "${Timeout}",
        "End": True,
    }
    start = {"Type": "Pass", "Assign": {"n": 1}, "Next": "Call"}
    assert check({"StartAt": "Start", "States": {"Start": start, "Call": state}}) == []


_ASKED: dict[str, Any] = {"Variable": "$.found", "Next": "Done"}
_STEP = {"Name": "fit", "HadoopJarStep": {"Jar": "command-runner.jar"}}


@pytest.mark.parametrize(
    "rules",
    [
        [{**_ASKED, "BooleanEquals": True}, {**_ASKED, "BooleanEquals": False}],
        [
            {"Not": {"Variable": "$.found", "IsPresent": True}, "Next": "Done"},
            {**_ASKED, "IsPresent": True},
        ],
    ],
)
def test_rules_that_ask_both_ways_need_no_default(rules: list[dict[str, Any]]) -> None:
    choice = {"Type": "Choice", "Choices": rules}
    assert check({"StartAt": "A", "States": {"A": choice, "Done": {"Type": "Succeed"}}}) == []


@pytest.mark.parametrize(("action", "found"), [("TERMINATE_CLUSTER", 0), ("CONTINUE", 1)])
def test_a_step_that_ends_its_cluster_leaves_none(action: str, found: int) -> None:
    emr = "arn:aws:states:::elasticmapreduce"
    cluster = {"Name": "c", "Instances": {"KeepJobFlowAliveWhenNoSteps": True}}
    step = {"ClusterId.$": "$.ClusterId", "Step": {**_STEP, "ActionOnFailure": action}}
    states: dict[str, dict[str, Any]] = {
        "Create": {"Resource": f"{emr}:createCluster.sync", "Parameters": cluster, "Next": "Fit"},
        "Fit": {
            "Resource": f"{emr}:addStep.sync",
            "Parameters": step,
            "ResultPath": None,
            "Next": "End",
        },
        "End": {
            "Resource": f"{emr}:terminateCluster.sync",
            "Parameters": {"ClusterId.$": "$.ClusterId"},
            "End": True,
        },
    }
    tasks = {name: {"Type": "Task", **state} for name, state in states.items()}
    assert len(check({"StartAt": "Create", "States": tasks})) == found


@pytest.mark.parametrize(
    "expression",
    [
        "$states.input.names ~> $map($uppercase) ~> $join(', ')",
        "$substring($states.input.name, 1)",
        "$sum($states.input.sizes) + $count([1, 2]) * 2",
        "$states.input.name > 'a' and $exists($states.input.size)",
        "$match($states.input.name, /a/)[0].match",
        "($add := function($a, $b) { $a + $b }; $reduce($states.input.sizes, $add, 0))",
        "$split($split($states.input.name, '/')[-1], ':')[-1]",
        "$now() & $string($random()) & $hash($states.input.name, 'SHA-256')",
        "$states.input.names.$contains('a')",
        "$replace($states.input.name, /(?:a|b)/, '??')",
    ],
)
def test_types_that_fit_are_no_fault(expression: str) -> None:
    state = {"Type": "Succeed", "Output": {"value": f"{{% {expression} %}}"}}
    assert check({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}) == []


def test_what_the_data_of_jsonpath_has_is_read_without_a_finding() -> None:
    request = {"TableName": "runs", "Key": {"run": {"S.$": "$$.Execution.Name"}}}
    states: dict[str, Any] = {
        "Get": {
            "Type": "Task",
            "Resource": "arn:aws:states:::dynamodb:getItem",
            "Parameters": request,
            "ResultSelector": {"item.$": "$.Item", "status.$": "$.SdkHttpMetadata.HttpStatusCode"},
            "ResultPath": "$.got.run",
            "Next": "Make",
        },
        "Make": {
            "Type": "Pass",
            "Parameters": {"id.$": "$.got.run.item.id.S", "name.$": "$.name", "size": {"of": 1}},
            "ResultPath": "$.made",
            "OutputPath": "$.made",
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.name",
            "ItemSelector": {"id.$": "$.id", "size.$": "$.size.of"},
            "ItemProcessor": {
                "StartAt": "Item",
                "States": {"Item": {"Type": "Pass", "InputPath": "$.size", "End": True}},
            },
            "ResultPath": "$.each",
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "Branch",
                    "States": {"Branch": {"Type": "Succeed", "OutputPath": "$.each[0].id"}},
                }
            ],
            "ResultPath": None,
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Lost"}],
            "Next": "Done",
        },
        "Lost": {"Type": "Fail", "CausePath": "$.error.Cause"},
        "Done": {"Type": "Succeed", "OutputPath": "$.each"},
    }
    assert check({"StartAt": "Get", "States": states}) == []


def test_expressions_of_dynamodb_that_work_are_no_fault() -> None:
    request = {
        "TableName": "runs",
        "Key": {"run": {"S": "a"}},
        "UpdateExpression": "SET #status = :s, ended = if_not_exists(ended, :t) REMOVE attempt[0]",
        "ConditionExpression": "attribute_exists(run) AND size(notes) < :n",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {":s": {"S": "x"}, ":t": {"S": "x"}, ":n": {"N": "1"}},
    }
    resource = "arn:aws:states:::dynamodb:updateItem"
    state = {"Type": "Task", "Resource": resource, "Parameters": request, "End": True}
    assert check({"StartAt": "A", "States": {"A": state}}) == []


@pytest.mark.parametrize("path", sorted((ROOT / "statemachines").glob("*.json")), ids=str)
def test_our_renderings_have_no_finding(path: Path) -> None:
    assert lint(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/*.yaml")), ids=str)
def test_examples_have_no_finding(path: Path) -> None:
    found = lint(stepfunctions.dumps(stepfunctions.render(Pipeline.load(path).lower())))
    # Its file system is for later runs, as its source wants it.
    left = ["uncaught-cost"] if path.name == "provision_fsx.yaml" else []
    assert [each.rule for each in found] == left


def test_the_page_has_each_rule() -> None:
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    told = {row[0].strip("| `"): (row[1], row[2].removesuffix(" |")) for row in rows}
    assert told == {name: (severity, text) for name, (severity, text) in RULES.items()}
