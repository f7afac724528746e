"""Templates and configurations with every reference resolved, as resources of a deployment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestration.deploy import Role, Rule, Schedule, StateMachine, Target
from orchestration.deploy.aliases.model import Alias, Route
from orchestration.deploy.exporting.placeholders import snake
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import OFF, Logging, LogGroup
from orchestration.notices import Template

Resource = Alarm | Alias | LogGroup | Role | Rule | Schedule | StateMachine
_SUB = re.compile(r"\$\{(!?)([^}]*)\}")
_TERRAFORM = re.compile(r"\$\$\{|%%\{|\$\{([^}]*)\}")


def cloudformation(template: Mapping[str, Any], values: Mapping[str, str]) -> list[Resource]:
    """What a stack of the template creates with these values of parameters and account."""
    names = {
        "AWS::IAM::Role": ("RoleName", f"arn:aws:iam::{values['AWS::AccountId']}:role/"),
        "AWS::StepFunctions::StateMachine": (
            "StateMachineName",
            f"arn:aws:states:{values['AWS::Region']}:{values['AWS::AccountId']}:stateMachine:",
        ),
        "AWS::CloudWatch::Alarm": ("AlarmName", ""),
        "AWS::Logs::LogGroup": (
            "LogGroupName",
            f"arn:aws:logs:{values['AWS::Region']}:{values['AWS::AccountId']}:log-group:",
        ),
    }
    resources = template["Resources"]

    def arn(id: str) -> str:
        field, prefix = names[resources[id]["Type"]]
        return prefix + str(resolved(resources[id]["Properties"][field]))

    def resolved(value: Any) -> Any:
        match value:
            case {"Ref": id}:
                return values[id] if id in values else arn(id)
            case {"Fn::GetAtt": [id, "Arn"]}:
                return f"{arn(id)}:*" if ":log-group:" in arn(id) else arn(id)
            case {"Fn::Sub": str() as text}:
                return _SUB.sub(lambda m: f"${{{m[2]}}}" if m[1] else values[m[2]], text)
            case Mapping():
                return {key: resolved(each) for key, each in value.items()}
            case list():
                return [resolved(each) for each in value]
            case _:
                return value

    values = {**values, **_qualified(resources, resolved({"Ref": "StateMachine"}))}
    for rule in template.get("Rules", {}).values():
        for assertion in rule["Assertions"]:
            one, other = assertion["Assert"]["Fn::Equals"]
            assert resolved(one) == other
    return [
        _from_cloudformation(each["Type"], resolved(each["Properties"]), arn, id)
        for id, each in resources.items()
        if not each["Type"].endswith("Version")
    ]


def _pattern(written: Any) -> Any:
    """The pattern of a rule; one with a null stands there as text."""
    return json.loads(written) if isinstance(written, str) else written


def _qualified(resources: Mapping[str, Any], machine_arn: str) -> dict[str, str]:
    """The ARNs of the alias and the version of the state machine, which is the first."""
    ends = {
        id: each["Properties"].get("Name", "1")
        for id, each in resources.items()
        if each["Type"].endswith(("StateMachineAlias", "StateMachineVersion"))
    }
    return {id: f"{machine_arn}:{end}" for id, end in ends.items()}


def _from_cloudformation(kind: str, found: Mapping[str, Any], arn: Any, id: str) -> Resource:
    tags = {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}
    match kind:
        case "AWS::IAM::Role":
            [policy] = found["Policies"]
            assert policy["PolicyName"] == "orchestration"
            return Role(
                name=found["RoleName"],
                arn=arn(id),
                trust=found["AssumeRolePolicyDocument"],
                policy=policy["PolicyDocument"],
                tags=tags,
            )
        case "AWS::StepFunctions::StateMachine":
            return StateMachine(
                name=found["StateMachineName"],
                arn=arn(id),
                definition=json.loads(found["DefinitionString"]),
                role_arn=found["RoleArn"],
                tags=tags,
                logging=_logging(found.get("LoggingConfiguration")),
                tracing=found.get("TracingConfiguration", {"Enabled": False})["Enabled"],
            )
        case "AWS::StepFunctions::StateMachineAlias":
            # A preference leads the alias of a new stack to the one version that there is.
            tried = found.get("DeploymentPreference", {})
            routes = found.get("RoutingConfiguration", [{**tried, "Weight": 100}])
            weights = [(each["StateMachineVersionArn"], each["Weight"]) for each in routes]
            return _alias(found["Name"], found["Description"], weights)
        case "AWS::CloudWatch::Alarm":
            return Alarm.of({**found, "AlarmArn": ""}, tags)
        case "AWS::Logs::LogGroup":
            return LogGroup(
                name=found["LogGroupName"],
                arn=arn(id),
                retention_days=found.get("RetentionInDays"),
                tags=tags,
            )
        case "AWS::Scheduler::Schedule":
            return _schedule(found)
        case "AWS::Events::Rule":
            return Rule(
                name=found["Name"],
                pattern=_pattern(found["EventPattern"]),
                targets=tuple(map(_target, found["Targets"])),
                state=found["State"],
            )
    raise AssertionError(kind)


def _alias(name: str, description: str, routes: Sequence[tuple[str, int]]) -> Alias:
    machine_arn = routes[0][0].rpartition(":")[0]
    return Alias(
        name=name,
        machine_arn=machine_arn,
        description=description,
        routes=tuple(
            Route(weight=weight, version=int(arn.removeprefix(f"{machine_arn}:")))
            for arn, weight in routes
        ),
    )


def _logging(found: Mapping[str, Any] | None) -> Logging:
    """The logging of a state machine; of one that says nothing, what Step Functions says."""
    if found is None:
        return OFF
    [destination] = found["Destinations"]
    return Logging(
        level=found["Level"],
        include_execution_data=found["IncludeExecutionData"],
        log_group_arn=destination["CloudWatchLogsLogGroup"]["LogGroupArn"].removesuffix(":*"),
    )


def _schedule(request: Mapping[str, Any]) -> Schedule:
    target = request["Target"]
    return Schedule(
        name=request["Name"],
        expression=request["ScheduleExpression"],
        timezone=request["ScheduleExpressionTimezone"],
        target_arn=target["Arn"],
        role_arn=target["RoleArn"],
        input=json.loads(target["Input"]),
        state=request["State"],
        start=request.get("StartDate"),
        end=request.get("EndDate"),
        window_minutes=request["FlexibleTimeWindow"].get("MaximumWindowInMinutes"),
        retry=target["RetryPolicy"],
    )


def _target(target: Mapping[str, Any]) -> Target:
    template = target.get("InputTransformer")
    return Target(
        id=target["Id"],
        arn=target["Arn"],
        role_arn=target.get("RoleArn", ""),
        input=target.get("Input"),
        template=None
        if template is None
        else Template(paths=template["InputPathsMap"], text=template["InputTemplate"]),
    )


def terraform(configuration: Mapping[str, Any], values: Mapping[str, str]) -> list[Resource]:
    """What Terraform creates with these values of variables and account."""
    known = terraform_known(configuration, values)
    blocks = evaluated(without_meta(configuration["resource"]), known)
    return list(from_terraform(blocks, known))


def terraform_known(configuration: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """The values of what texts refer to, by reference."""
    known = {
        "local.account_id": values["AWS::AccountId"],
        "local.region": values["AWS::Region"],
        **{f"var.{snake(name)}": value for name, value in values.items()},
    }
    for kind, label, prefix in _named(configuration, values):
        name = template_text(configuration["resource"][kind][label]["name"], known)
        known |= {f"{kind}.{label}.name": name, f"{kind}.{label}.arn": prefix + name}
    resources = configuration["resource"]
    for label, alias in resources.get("aws_sfn_alias", {}).items():
        [machine] = [
            m for m, block in resources["aws_sfn_state_machine"].items() if "publish" in block
        ]
        arn = known[f"aws_sfn_state_machine.{machine}.arn"]
        known[f"aws_sfn_state_machine.{machine}.state_machine_version_arn"] = f"{arn}:1"
        known[f"aws_sfn_alias.{label}.arn"] = f"{arn}:{alias['name']}"
    return known


def without_meta(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the arguments that Terraform itself reads."""
    return {
        kind: {
            label: {k: v for k, v in block.items() if k not in ("depends_on", "lifecycle")}
            for label, block in labelled.items()
        }
        for kind, labelled in resources.items()
    }


def _named(
    configuration: Mapping[str, Any], values: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    account, region = values["AWS::AccountId"], values["AWS::Region"]
    for kind, prefix in (
        ("aws_iam_role", f"arn:aws:iam::{account}:role/"),
        ("aws_sfn_state_machine", f"arn:aws:states:{region}:{account}:stateMachine:"),
        ("aws_cloudwatch_log_group", f"arn:aws:logs:{region}:{account}:log-group:"),
        ("aws_cloudwatch_event_rule", f"arn:aws:events:{region}:{account}:rule/"),
    ):
        for label in configuration["resource"].get(kind, {}):
            yield kind, label, prefix


def evaluated(value: Any, known: Mapping[str, str]) -> Any:
    """Evaluate each text as Terraform evaluates a template."""
    match value:
        case str():
            return template_text(value, known)
        case Mapping():
            return {key: evaluated(each, known) for key, each in value.items()}
        case list():
            return [evaluated(each, known) for each in value]
        case _:
            return value


def template_text(text: str, known: Mapping[str, str]) -> str:
    """Evaluate a template that only refers: https://developer.hashicorp.com/terraform/language/expressions/strings."""
    assert not re.search(r"(?<!%)%\{", text), "a directive"
    return _TERRAFORM.sub(lambda m: m[0][1:] if m[1] is None else known[m[1]], text)


def from_terraform(blocks: Mapping[str, Any], known: Mapping[str, str]) -> Iterator[Resource]:
    """Read resources whose texts are evaluated."""
    for label, found in blocks.get("aws_iam_role", {}).items():
        policy = blocks["aws_iam_role_policy"][label]
        assert (policy["name"], policy["role"]) == ("orchestration", found["name"])
        yield Role(
            name=found["name"],
            arn=known[f"aws_iam_role.{label}.arn"],
            trust=json.loads(found["assume_role_policy"]),
            policy=json.loads(policy["policy"]),
            tags=found["tags"],
        )
    for label, found in blocks["aws_sfn_state_machine"].items():
        assert found["type"] == "STANDARD"
        yield StateMachine(
            name=found["name"],
            arn=known[f"aws_sfn_state_machine.{label}.arn"],
            definition=json.loads(found["definition"]),
            role_arn=found["role_arn"],
            tags=found["tags"],
            logging=_terraform_logging(found.get("logging_configuration")),
            tracing=found.get("tracing_configuration", {"enabled": False})["enabled"],
        )
    for found in blocks.get("aws_sfn_alias", {}).values():
        routes = found["routing_configuration"]
        weighted = [(each["state_machine_version_arn"], each["weight"]) for each in routes]
        yield _alias(found["name"], found["description"], weighted)
    for label, found in blocks.get("aws_cloudwatch_log_group", {}).items():
        yield LogGroup(
            name=found["name"],
            arn=known[f"aws_cloudwatch_log_group.{label}.arn"],
            retention_days=found["retention_in_days"] or None,
            tags=found["tags"],
        )
    for found in blocks.get("aws_cloudwatch_metric_alarm", {}).values():
        named = {
            "".join(word.title() for word in name.split("_")): value
            for name, value in found.items()
            if name != "tags"
        }
        dimensions = [{"Name": n, "Value": value} for n, value in found["dimensions"].items()]
        alarm = {**named, "AlarmArn": "", "Dimensions": dimensions}
        yield Alarm.of(alarm, found["tags"])
    for found in blocks.get("aws_scheduler_schedule", {}).values():
        yield _terraform_schedule(found)
    for found in blocks.get("aws_cloudwatch_event_rule", {}).values():
        targets = blocks["aws_cloudwatch_event_target"].values()
        yield Rule(
            name=found["name"],
            pattern=json.loads(found["event_pattern"]),
            targets=tuple(_terraform_target(t) for t in targets if t["rule"] == found["name"]),
            state=found["state"],
        )


def _terraform_logging(found: Mapping[str, Any] | None) -> Logging:
    if found is None:
        return OFF
    assert found["log_destination"].endswith(":*")
    return Logging(
        level=found["level"],
        include_execution_data=found["include_execution_data"],
        log_group_arn=found["log_destination"].removesuffix(":*"),
    )


def _terraform_schedule(found: Mapping[str, Any]) -> Schedule:
    target, retry = found["target"], found["target"]["retry_policy"]
    assert found["group_name"] == "default"
    return Schedule(
        name=found["name"],
        expression=found["schedule_expression"],
        timezone=found["schedule_expression_timezone"],
        target_arn=target["arn"],
        role_arn=target["role_arn"],
        input=json.loads(target["input"]),
        state=found["state"],
        start=found.get("start_date"),
        end=found.get("end_date"),
        window_minutes=found["flexible_time_window"].get("maximum_window_in_minutes"),
        retry={
            "MaximumEventAgeInSeconds": retry["maximum_event_age_in_seconds"],
            "MaximumRetryAttempts": retry["maximum_retry_attempts"],
        },
    )


def _terraform_target(found: Mapping[str, Any]) -> Target:
    template = found.get("input_transformer")
    return Target(
        id=found["target_id"],
        arn=found["arn"],
        role_arn=found.get("role_arn", ""),
        input=found.get("input"),
        template=None
        if template is None
        else Template(paths=template["input_paths"], text=template["input_template"]),
    )


def compared(resources: Any) -> dict[tuple[str, str], Any]:
    """The parts of resources, by type and name; lists of policies are sets."""
    return {(type(r).__name__, r.name): _unordered(r.aspects()) for r in resources}


def _unordered(value: Any) -> Any:
    match value:
        case Mapping():
            return {
                key: sorted(each)
                if key in ("Resource", "Action") and isinstance(each, list)
                else _unordered(each)
                for key, each in value.items()
            }
        case list() | tuple():
            return [_unordered(each) for each in value]
        case _:
            return value
