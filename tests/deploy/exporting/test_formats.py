"""Templates and configurations are what CloudFormation and Terraform take."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Parameter, parameter
from orchestration.deploy.exporting import cloudformation, export, terraform
from orchestration.deploy.exporting.placeholders import Placeholders
from orchestration.errors import DeployError
from tests.deploy.exporting import resolving
from tests.deploy.exporting.cases import (
    CASES,
    GIVEN,
    batch,
    datasync,
    digits,
    events,
    following,
    llm_fsx,
)
from tests.deploy.exporting.conftest import Made, Make
from tests.deploy.exporting.test_law import STACK
from tests.deploy.pipelines import digits as whole
from tests.deploy.pipelines import resting, source_folder
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

# Argument Reference of each page of the provider, as of November 2026 (6.x): required, optional.
# https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/NAME without "aws_".
ARGUMENTS: Mapping[str, tuple[set[str], set[str]]] = {
    "aws_iam_role": ({"assume_role_policy"}, {"name", "description", "tags"}),
    "aws_iam_role_policy": ({"policy", "role"}, {"name"}),
    "aws_cloudwatch_metric_alarm": (
        {"alarm_name", "comparison_operator", "evaluation_periods"},
        {
            "actions_enabled",
            "alarm_actions",
            "alarm_description",
            "dimensions",
            "metric_name",
            "namespace",
            "period",
            "statistic",
            "tags",
            "threshold",
            "treat_missing_data",
        },
    ),
    "aws_cloudwatch_log_group": (set(), {"name", "retention_in_days", "skip_destroy", "tags"}),
    "aws_sfn_state_machine": (
        {"definition", "role_arn"},
        {"name", "type", "tags", "publish", "logging_configuration", "tracing_configuration"},
    ),
    "aws_sfn_alias": ({"name", "routing_configuration"}, {"description"}),
    "aws_sfn_alias.routing_configuration": ({"state_machine_version_arn", "weight"}, set()),
    "aws_sfn_state_machine.logging_configuration": (
        set(),
        {"level", "include_execution_data", "log_destination"},
    ),
    "aws_sfn_state_machine.tracing_configuration": (set(), {"enabled"}),
    "aws_scheduler_schedule": (
        {"flexible_time_window", "schedule_expression", "target"},
        {
            "name",
            "group_name",
            "description",
            "schedule_expression_timezone",
            "start_date",
            "end_date",
            "state",
        },
    ),
    "aws_scheduler_schedule.flexible_time_window": ({"mode"}, {"maximum_window_in_minutes"}),
    "aws_scheduler_schedule.target": ({"arn", "role_arn"}, {"input", "retry_policy"}),
    "aws_scheduler_schedule.target.retry_policy": (
        set(),
        {"maximum_event_age_in_seconds", "maximum_retry_attempts"},
    ),
    # One of event_pattern and schedule_expression is required; `state` replaces `is_enabled`.
    "aws_cloudwatch_event_rule": ({"event_pattern"}, {"name", "description", "state"}),
    "aws_cloudwatch_event_target": (
        {"rule", "arn"},
        {"target_id", "role_arn", "input", "input_transformer"},
    ),
    "aws_cloudwatch_event_target.input_transformer": ({"input_template"}, {"input_paths"}),
}
META = {"depends_on", "lifecycle"}
"""https://developer.hashicorp.com/terraform/language/meta-arguments/depends_on, and lifecycle."""
ADDRESS = re.compile(r"[a-z_]+\.[a-z][a-z0-9_]*")


def lint(text: str) -> list[str]:
    from cfnlint.api import lint_all

    return [str(m) for m in lint_all(text) if not m.rule.id.startswith("I")]


@pytest.mark.parametrize(
    "make",
    [
        digits,
        events,
        following,
        *(pytest.param(m, marks=pytest.mark.thorough) for m in (batch, datasync, llm_fsx)),
    ],
)
def test_cfn_lint_finds_nothing(make: Make, made: Made) -> None:
    assert lint(cloudformation.template(made(make)[1]).text()) == []


def test_cfn_lint_would_find_a_wrong_property_and_a_wrong_definition(made: Made) -> None:
    document = json.loads(cloudformation.template(made(following)[1]).text(as_json=True))
    document["Resources"]["StateMachine"]["Properties"]["DefinitionString"] = "{}"
    document["Resources"]["TriggerRule"]["Properties"]["Stat"] = "ENABLED"
    found = " ".join(lint(json.dumps(document)))
    assert "States" in found
    assert "Stat" in found


@pytest.mark.parametrize("make", CASES)
def test_a_template_has_no_null(make: Make, made: Made) -> None:
    """CloudFormation refuses the whole template for one, and cfn-lint says nothing of it."""
    document = json.loads(cloudformation.template(made(make)[1]).text(as_json=True))
    assert nulls(document) == []


def nulls(value: Any, path: str = "") -> list[str]:
    match value:
        case dict():
            return [found for key in value for found in nulls(value[key], f"{path}/{key}")]
        case list():
            return [found for i, each in enumerate(value) for found in nulls(each, f"{path}/{i}")]
        case _:
            return [path] if value is None else []


def test_records_outlive_a_stack_and_are_not_in_the_way_of_one_that_never_was(made: Made) -> None:
    group = cloudformation.template(made(following)[1]).document["Resources"]["LogGroup"]
    assert group["DeletionPolicy"] == "RetainExceptOnCreate"
    assert group["UpdateReplacePolicy"] == "Retain"


def test_a_stack_tries_a_new_version_and_watches_the_alarms(made: Made) -> None:
    _, exported = made(following)
    resources = cloudformation.template(exported).document["Resources"]
    assert resources["LiveAlias"]["Properties"]["DeploymentPreference"] == {
        "StateMachineVersionArn": {"Ref": "StateMachineVersion"},
        "Type": "CANARY",
        "Percentage": 10,
        "Interval": 30,
        "Alarms": [
            {"Ref": id} for id, each in resources.items() if each["Type"].endswith("::Alarm")
        ],
    }
    assert "RoutingConfiguration" not in resources["LiveAlias"]["Properties"]
    # What an update replaces stays, to lead the alias back to.
    assert resources["StateMachineVersion"]["UpdateReplacePolicy"] == "Retain"
    [said] = terraform.warnings(exported)
    assert said.startswith("alias live gives a new version all runs at once")
    assert terraform.warnings(made(events)[1]) == ()
    [roles] = cloudformation.warnings(exported)
    assert roles.startswith("alias live leaves runs to the version before while a new one is tried")
    assert cloudformation.warnings(made(events)[1]) == ()
    linear = {"alias": {"name": "live", "linear": {"percent": 20, "minutes": 5}}}
    stepped = export(resting(step_functions=linear), parameters=GIVEN)
    preference = cloudformation.template(stepped).document["Resources"]["LiveAlias"]["Properties"]
    assert preference["DeploymentPreference"] == {
        "StateMachineVersionArn": {"Ref": "StateMachineVersion"},
        "Type": "LINEAR",
        "Percentage": 20,
        "Interval": 5,
    }


def test_yaml_and_json_are_the_same_template(made: Made) -> None:
    template = cloudformation.template(made(digits)[1])
    assert yaml.safe_load(template.text()) == json.loads(template.text(as_json=True))


def test_definitions_may_lie_in_s3(made: Made) -> None:
    _, export = made(digits)
    template = cloudformation.template(export, definitions="s3://templates/definitions/")
    properties = template.document["Resources"]["StateMachine"]["Properties"]
    place = properties["DefinitionS3Location"]
    assert place["Bucket"] == "templates"
    inline = cloudformation.template(export).document["Resources"]["StateMachine"]["Properties"]
    assert template.definitions[place["Key"]] == inline["DefinitionString"]
    # It could be sent within a request, too.
    assert len(template.text().encode()) < cloudformation.MOST_INLINE_BYTES
    with pytest.raises(DeployError, match="expected s3://bucket/prefix"):
        cloudformation.template(export, definitions="templates")


def test_a_template_that_cloudformation_would_not_take_is_refused(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = cloudformation.template(made(digits)[1])
    monkeypatch.setattr(cloudformation, "MOST_BYTES", 50_000)
    with pytest.raises(DeployError, match="takes 50,000; let the definitions lie in S3"):
        template.text()


def test_a_template_for_one_region_is_refused_elsewhere(made: Made) -> None:
    _, export = made(following)
    rules = cloudformation.template(export).document["Rules"]
    [assertion] = rules["Region"]["Assertions"]
    assert assertion["Assert"] == {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-east-1"]}
    machine = terraform.configuration(export)["resource"]["aws_sfn_state_machine"]["pipeline"]
    [condition] = machine["lifecycle"]["precondition"]
    assert condition["condition"] == '${local.region == "us-east-1"}'


def test_what_gets_into_an_arn_of_sagemaker_is_in_lower_case(tmp_path: Path) -> None:
    """SageMaker writes names in lower case there, and a template can't."""
    folder = source_folder(tmp_path)
    pipeline = whole(
        folder,
        endpoint_name=parameter("endpoint"),
        parameters={name: Parameter() for name in ("bucket", "data", "endpoint")},
    )
    made = export(pipeline, parameters={**GIVEN, "endpoint": "${Endpoint}"})
    patterns = {
        name: each["AllowedPattern"]
        for name, each in cloudformation.template(made).document["Parameters"].items()
    }
    assert re.fullmatch(patterns["Endpoint"], "digits-1")
    assert not re.fullmatch(patterns["Endpoint"], "Digits-1")
    assert re.fullmatch(patterns["RoleName"], "SageMakerExecution")
    variables = terraform.configuration(made)["variable"]
    assert "A-Z" in variables["endpoint"]["validation"]["condition"]
    assert "A-Z" not in variables["role_name"]["validation"]["condition"]


def test_values_that_nothing_depends_on_are_no_parameters(made: Made) -> None:
    assert made(digits)[1].parameters == ("Bucket", "DataBucket", "DataPrefix", "RoleName")


def test_names_that_terraform_would_take_for_one_are_refused(made: Made) -> None:
    given = {**GIVEN, "bucket": "${dataBucket}"}
    with pytest.raises(DeployError, match="DataBucket, dataBucket"):
        export(made(digits)[0].pipeline, parameters=given)


@pytest.mark.parametrize("make", CASES)
def test_terraform_takes_every_argument(make: Make, made: Made) -> None:
    document = json.loads(terraform.text(made(make)[1]))
    assert document.keys() <= {"terraform", "variable", "data", "locals", "resource", "output"}
    addresses = set()
    for kind, labelled in document["resource"].items():
        for label, arguments in labelled.items():
            addresses.add(f"{kind}.{label}")
            check(kind, arguments)
    for address in re.findall(r"\$\{(aws_[^}]*)\.(?:arn|name)\}", json.dumps(document)):
        assert address in addresses
    for needed in depended(document["resource"]):
        assert ADDRESS.fullmatch(needed), "a reference, and no template"
        assert needed in addresses


def check(path: str, arguments: Mapping[str, Any]) -> None:
    required, optional = ARGUMENTS[path]
    given = arguments.keys() - META
    assert required <= given <= required | optional, path
    for name, value in arguments.items():
        if f"{path}.{name}" in ARGUMENTS:
            for block in value if isinstance(value, list) else [value]:
                check(f"{path}.{name}", block)


def depended(resources: Mapping[str, Any]) -> list[str]:
    return [
        address
        for labelled in resources.values()
        for arguments in labelled.values()
        for address in arguments.get("depends_on", ())
    ]


def terraform_binary() -> str | None:
    return shutil.which("terraform") or shutil.which("tofu")


@pytest.mark.skipif(terraform_binary() is None, reason="neither terraform nor tofu is installed")
@pytest.mark.parametrize(
    "make",
    [
        digits,
        datasync,
        events,
        *(pytest.param(m, marks=pytest.mark.thorough) for m in (batch, following, llm_fsx)),
    ],
)
def test_terraform_reads_every_text_as_it_was(make: Make, made: Made, tmp_path: Path) -> None:
    """Terraform itself evaluates the texts; what needs the provider is replaced by its value."""
    configuration = json.loads(terraform.text(made(make)[1]))
    known = resolving.terraform_known(configuration, STACK)
    resources = json.dumps(resolving.without_meta(configuration["resource"]))
    referring = re.sub(r"\$\{(aws_[^}]*)\}", r"${local.known[\"\1\"]}", resources)
    document = {
        "variable": configuration["variable"],
        "locals": {
            "account_id": STACK["AWS::AccountId"],
            "region": STACK["AWS::Region"],
            "known": {key: value for key, value in known.items() if key.startswith("aws_")},
        },
        "output": {"resources": {"value": json.loads(referring)}},
    }
    folder = tmp_path / "terraform"
    folder.mkdir()
    (folder / "main.tf.json").write_text(json.dumps(document))
    variables = {name: known[f"var.{name}"] for name in configuration["variable"]}
    (folder / "terraform.tfvars.json").write_text(json.dumps(variables))
    for command in (["init"], ["apply", "-auto-approve"]):
        run(folder, *command, "-input=false")
    evaluated = json.loads(run(folder, "output", "-json"))["resources"]["value"]
    found = resolving.from_terraform(evaluated, known)
    expected = resolving.terraform(configuration, STACK)
    assert resolving.compared(found) == resolving.compared(expected)


def run(folder: Path, *arguments: str) -> str:
    (folder / "terraformrc").touch()
    offline = {"TF_CLI_CONFIG_FILE": str(folder / "terraformrc"), "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run(
        [str(terraform_binary()), *arguments],
        cwd=folder,
        env={**os.environ, **offline},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_names_inside_the_objects_of_a_list_are_parameters_too() -> None:
    markets: Any = [{"market": "de", "data": "s3://${Bucket}/de"}]
    names = Placeholders.of([markets])
    marked: Any = names.marked(markets)
    assert names.held(marked) == {"Bucket"}
    assert names.filled(marked[0]["data"], {"Bucket": "mine"}) == "s3://mine/de"


def test_a_role_that_needs_nothing_has_no_policy() -> None:
    made = export(resting(), parameters=GIVEN)
    [role] = [
        each["Properties"]
        for each in cloudformation.template(made).document["Resources"].values()
        if each["Type"] == "AWS::IAM::Role"
    ]
    assert "Policies" not in role
    resources = terraform.configuration(made)["resource"]
    assert "aws_iam_role_policy" not in resources
    assert "depends_on" not in resources["aws_sfn_state_machine"]["pipeline"]
