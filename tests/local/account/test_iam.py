"""IAM: policies are evaluated by action, resource and condition, and enforced on every call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from orchestration.execution.clients import assumed, sign_with
from orchestration.local import EmbeddedAws
from orchestration.local.iam.needs import needs
from orchestration.local.policies.evaluation import Need, allows

OBJECT = "arn:aws:s3:::bucket/data/a*b/one"


def allowed(need: Need, *statements: dict[str, Any]) -> bool:
    return allows([{"Version": "2012-10-17", "Statement": list(statements)}], need)


def allow(action: str, resource: str, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": [action], "Resource": [resource], **more}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (allow("s3:GetObject", OBJECT.replace("*", "${*}")), True),
        (allow("S3:getobject", "*"), True),
        (allow("s3:Get*", "arn:aws:s3:::bucket/data/*"), True),
        (allow("s3:GetObjec?", "arn:aws:s3:::bucket/dat?/*"), True),
        (allow("s3:GetObject", "arn:aws:s3:::bucket/data/a${*}c/*"), False),
        (allow("s3:GetObject", "arn:aws:s3:::Bucket/*"), False),
        (allow("s3:PutObject", "*"), False),
        ({"Effect": "Allow", "NotAction": "s3:Put*", "Resource": "*"}, True),
        ({"Effect": "Allow", "NotAction": "s3:Get*", "Resource": "*"}, False),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::bucket/*"}, False),
    ],
)
def test_actions_and_resources_match(statement: dict[str, Any], expected: bool) -> None:
    assert allowed(Need("s3:GetObject", OBJECT), statement) is expected


def test_a_bucket_policys_conditions_decide_on_other_accounts(aws: EmbeddedAws) -> None:
    theirs = aws.client("s3", account="999988887777")
    theirs.create_bucket(Bucket="shared")
    for key in ("open/file", "closed/file"):
        theirs.put_object(Bucket="shared", Key=key, Body=b"x")
    mine: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"AWS": "123456789012"},
        "Resource": ["arn:aws:s3:::shared", "arn:aws:s3:::shared/*"],
    }
    listing = {**mine, "Action": "s3:ListBucket", "Condition": {"StringLike": {"s3:prefix": "o*"}}}
    secured = {"Bool": {"aws:SecureTransport": "true"}}
    reading = {**mine, "Action": "s3:GetObject", "Condition": secured}
    sealing = {
        **mine,
        "Effect": "Deny",
        "Action": "s3:PutObject",
        "Condition": {"StringNotEquals": {"s3:x-amz-server-side-encryption": "aws:kms"}},
    }
    writing = {**mine, "Action": "s3:PutObject"}
    policy = {"Version": "2012-10-17", "Statement": [listing, reading, writing, sealing]}
    theirs.put_bucket_policy(Bucket="shared", Policy=json.dumps(policy))
    s3 = aws.client("s3")
    assert s3.list_objects_v2(Bucket="shared", Prefix="open/")["KeyCount"] == 1
    s3.get_object(Bucket="shared", Key="closed/file")
    s3.put_object(Bucket="shared", Key="mine", Body=b"x", ServerSideEncryption="aws:kms")
    refusals: tuple[Callable[[], Any], ...] = (
        lambda: s3.list_objects_v2(Bucket="shared", Prefix="closed/"),
        lambda: s3.list_objects_v2(Bucket="shared"),
        lambda: s3.put_object(Bucket="shared", Key="mine", Body=b"x"),
    )
    for refused in refusals:
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()


def test_a_denial_wins_and_nothing_is_allowed_by_itself() -> None:
    need = Need("s3:GetObject", OBJECT)
    every = allow("s3:*", "*")
    assert allowed(need, every)
    assert not allowed(need)
    assert not allowed(need, every, {**allow("s3:GetObject", OBJECT[:-5] + "*"), "Effect": "Deny"})
    assert allowed(need, every, {**allow("s3:PutObject", "*"), "Effect": "Deny"})


ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:digits"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"StringEquals": {"iam:passedtoservice": ["a", "sagemaker.amazonaws.com"]}}, True),
        ({"StringEquals": {"iam:PassedToService": "states.amazonaws.com"}}, False),
        ({"StringNotEquals": {"iam:PassedToService": "states.amazonaws.com"}}, True),
        ({"StringLike": {"iam:PassedToService": "sage*"}}, True),
        ({"StringNotLike": {"iam:PassedToService": "sage*"}}, False),
        ({"StringEquals": {"aws:RequestTag/team": "a"}}, False),
        ({"StringEqualsIfExists": {"aws:RequestTag/team": "a"}}, True),
        ({"StringNotEquals": {"aws:RequestTag/team": "a"}}, True),
        ({"Null": {"aws:RequestTag/team": "true"}}, True),
        ({"Null": {"iam:PassedToService": "true"}}, False),
        ({"ForAnyValue:StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}, True),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": "a"}}, True),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:states:*:123456789012:stateMachine:dig*"}}, True),
        # Each of the six parts is compared by itself.
        ({"ArnLike": {"aws:SourceArn": "arn:aws:states:*:digits"}}, False),
        ({"StringLike": {"aws:SourceArn": "arn:aws:states:*:digits"}}, True),
        ({"ArnNotLike": {"aws:SourceArn": "arn:aws:states:*:*:*"}}, False),
        ({"Bool": {"aws:SecureTransport": "TRUE"}}, True),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, True),
        ({"NumericGreaterThan": {"s3:max-keys": "10"}}, False),
    ],
)
def test_conditions(condition: dict[str, Any], expected: bool) -> None:
    context = {
        "iam:PassedToService": "sagemaker.amazonaws.com",
        "aws:SourceArn": ARN,
        "aws:SecureTransport": "true",
        "s3:max-keys": "10",
    }
    statement = allow("iam:PassRole", "*", Condition=condition)
    assert allowed(Need("iam:PassRole", "*", context), statement) is expected


def test_a_variable_without_a_value_matches_nothing() -> None:
    statement = allow("s3:GetObject", "arn:aws:s3:::bucket/${aws:username}/*")
    need = Need("s3:GetObject", "arn:aws:s3:::bucket/me/x", {"aws:username": "me"})
    assert allowed(need, statement)
    assert not allowed(Need(need.action, need.resource), statement)


def test_an_operator_that_is_not_evaluated_is_an_error() -> None:
    statement = allow("s3:GetObject", "*", Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})
    with pytest.raises(LookupError, match="IpAddress"):
        allowed(Need("s3:GetObject", OBJECT), statement)


@pytest.fixture(scope="module")
def enforcing() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(enforce_iam=True) as aws:
        aws.client("s3").create_bucket(Bucket="bucket")
        yield aws


def role(aws: EmbeddedAws, name: str, *statements: dict[str, Any]) -> str:
    """Make a role with these permissions."""
    iam = aws.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = {"Version": "2012-10-17", "Statement": [trust]}
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))["Role"]
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=json.dumps(policy))
    return str(arn["Arn"])


def refusal(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_session_may_do_what_its_role_allows_and_nothing_else(enforcing: EmbeddedAws) -> None:
    arn = role(enforcing, "writer", allow("s3:PutObject", "arn:aws:s3:::bucket/mine/*"))
    s3 = enforcing.acting_as(arn).client("s3")
    s3.put_object(Bucket="bucket", Key="mine/one", Body=b"x")
    assert refusal(s3.put_object, Bucket="bucket", Key="other", Body=b"x") == (
        "AccessDenied",
        "User: arn:aws:sts::123456789012:assumed-role/writer/service is not authorized to perform: "
        "s3:PutObject on resource: arn:aws:s3:::bucket/other because no identity-based policy "
        "allows the s3:PutObject action",
    )
    assert refusal(s3.get_object, Bucket="bucket", Key="mine/one")[0] == "AccessDenied"
    # The account itself is not restricted.
    enforcing.client("s3").put_object(Bucket="bucket", Key="other", Body=b"x")


def test_an_attached_policy_allows_by_its_default_version(enforcing: EmbeddedAws) -> None:
    arn, iam = role(enforcing, "attached", allow("s3:ListBucket", "*")), enforcing.client("iam")
    s3 = enforcing.acting_as(arn).client("s3")
    documents = [
        json.dumps({"Version": "2012-10-17", "Statement": [allow(action, "*")]})
        for action in ("s3:GetObject", "s3:PutObject")
    ]
    made = iam.create_policy(PolicyName="kept", PolicyDocument=documents[0])["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="attached", PolicyArn=made)
    assert refusal(s3.put_object, Bucket="bucket", Key="one", Body=b"x")[0] == "AccessDenied"
    iam.create_policy_version(PolicyArn=made, PolicyDocument=documents[1], SetAsDefault=True)
    s3.put_object(Bucket="bucket", Key="one", Body=b"x")


def test_a_role_is_passed_to_the_service_that_the_condition_names(enforcing: EmbeddedAws) -> None:
    to = {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    arn = role(
        enforcing,
        "passer",
        allow("iam:PassRole", "*", Condition=to),
        allow("states:CreateStateMachine", "*"),
    )
    states = enforcing.acting_as(arn).client("stepfunctions")
    machine = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
    code, message = refusal(
        states.create_state_machine, name="any", definition=json.dumps(machine), roleArn=arn
    )
    assert code == "AccessDeniedException"
    assert f"iam:PassRole on resource: {arn}" in message


def test_an_execution_acts_as_its_role(enforcing: EmbeddedAws) -> None:
    arn = role(enforcing, "idle", allow("s3:GetObject", "arn:aws:s3:::elsewhere/*"))
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:s3:putObject",
        "Arguments": {"Bucket": "bucket", "Key": "one", "Body": "x"},
        "End": True,
    }
    machine = {"QueryLanguage": "JSONata", "StartAt": "Put", "States": {"Put": state}}
    states = enforcing.client("stepfunctions")
    made = states.create_state_machine(name="idle", definition=json.dumps(machine), roleArn=arn)
    started = states.start_execution(stateMachineArn=made["stateMachineArn"])["executionArn"]
    while (run := states.describe_execution(executionArn=started))["status"] == "RUNNING":
        enforcing.events(started)
    assert run["error"] == "S3.AccessDeniedException"
    assert "s3:PutObject on resource: arn:aws:s3:::bucket/one" in run["cause"]


def test_a_role_is_assumed_where_it_exists_and_trusts_the_caller(aws: EmbeddedAws) -> None:
    place = "arn:aws:iam::123456789012:role"
    aws.provide(roles=[f"{place}/of-jobs"])
    assume = aws.client("sts").assume_role
    for name in ("of-jobs", "missing"):
        assert refusal(assume, RoleArn=f"{place}/{name}", RoleSessionName="test") == (
            "AccessDenied",
            "User: arn:aws:iam::123456789012:root is not authorized to perform: sts:AssumeRole on "
            f"resource: {place}/{name}",
        )
    assume(RoleArn=role(aws, "of-anyone", allow("s3:ListBucket", "*")), RoleSessionName="test")
    # As its service has it.
    identity = aws.acting_as(f"{place}/of-jobs").client("sts").get_caller_identity()
    assert identity["Arn"].startswith("arn:aws:sts::123456789012:assumed-role/of-jobs/")


def test_who_scales_needs_the_alarms_of_what_is_scaled(enforcing: EmbeddedAws) -> None:
    alarms = "arn:aws:cloudwatch:us-east-1:123456789012:alarm:TargetTracking-endpoint/shop/*"
    arn = role(
        enforcing,
        "scaler",
        allow("application-autoscaling:*", "*"),
        allow("cloudwatch:*", alarms),
    )
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    policy = {"TargetValue": 60.0, "PredefinedMetricSpecification": metric}
    request = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "PolicyName": "load",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": policy,
    }
    put = enforcing.acting_as(arn).client("application-autoscaling").put_scaling_policy
    allowed = refusal(put, **request, ResourceId="endpoint/shop/variant/main")
    assert allowed[0] == "ObjectNotFoundException"  # Nothing is registered.
    assert refusal(put, **request, ResourceId="endpoint/other/variant/main") == (
        "ValidationException",
        "User is missing the following permissions: cloudwatch:PutMetricAlarm",
    )


OWNER = "444455556666"
ROLE = f"arn:aws:iam::{OWNER}:role/registry"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:registry"


@pytest.fixture(scope="module")
def reader(enforcing: EmbeddedAws) -> str:
    """The role that another account's trusts, for one machine, to list its model groups."""
    made = role(enforcing, "reader", allow("sts:AssumeRole", ROLE))
    trusted = {
        "Effect": "Allow",
        "Principal": {"AWS": made},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": MACHINE}},
    }
    own = {**trusted, "Principal": {"AWS": f"arn:aws:iam::{OWNER}:root"}, "Condition": {}}
    documents = [
        json.dumps({"Version": "2012-10-17", "Statement": statements})
        for statements in ([trusted, own], [allow("sagemaker:ListModelPackages", "*")])
    ]
    iam = enforcing.client("iam", account=OWNER)
    iam.create_role(RoleName="registry", AssumeRolePolicyDocument=documents[0])
    iam.put_role_policy(RoleName="registry", PolicyName="own", PolicyDocument=documents[1])
    theirs = enforcing.client("sagemaker", account=OWNER)
    theirs.create_model_package_group(ModelPackageGroupName="prices")
    return made


def test_a_task_acts_as_the_role_of_another_account_that_it_may_assume(
    enforcing: EmbeddedAws, reader: str
) -> None:
    idle = role(enforcing, "unauthorised", allow("s3:ListBucket", "*"))
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sagemaker:listModelPackages",
        "Credentials": {"RoleArn": "{% $states.input.role %}"},
        "Arguments": {"ModelPackageGroupName": "{% $states.input.group %}"},
        "End": True,
    }
    machine = {"QueryLanguage": "JSONata", "StartAt": "List", "States": {"List": state}}
    states = enforcing.client("stepfunctions")
    made = states.create_state_machine(
        name="registry", definition=json.dumps(machine), roleArn=reader
    )["stateMachineArn"]
    assert made == MACHINE

    def run(assumed: str = ROLE) -> Any:
        given = json.dumps({"role": assumed, "group": "prices"})
        started = states.start_execution(stateMachineArn=made, input=given)["executionArn"]
        while (run := states.describe_execution(executionArn=started))["status"] == "RUNNING":
            enforcing.events(started)
        return run

    # The name of the group is that of the role's account.
    assert json.loads(run()["output"]) == {"ModelPackageSummaryList": []}
    missing = run(ROLE + "-s")
    assert missing["error"] == "States.Permissions"
    assert f"not authorized to perform: sts:AssumeRole on resource: {ROLE}-s" in missing["cause"]
    states.update_state_machine(stateMachineArn=made, roleArn=idle)
    refused = run()
    assert refused["error"] == "States.Permissions"
    assert "no identity-based policy allows the sts:AssumeRole action" in refused["cause"]


def test_a_role_is_assumed_once_and_has_no_more_than_its_own_permissions(
    enforcing: EmbeddedAws, reader: str
) -> None:
    def assuming(**more: str) -> Any:
        asked = {"RoleArn": ROLE, "RoleSessionName": "test", **more}
        return enforcing.acting_as(reader).client("sts").assume_role(**asked)

    assert refusal(assuming)[0] == "AccessDenied"
    assert assuming(ExternalId=MACHINE)["AssumedRoleUser"]["Arn"].startswith(
        f"arn:aws:sts::{OWNER}:"
    )
    sts = enforcing.client("sts", account=OWNER, config=Config(user_agent_extra="counted"))
    sagemaker = enforcing.client("sagemaker", config=Config())
    sign_with(sagemaker, assumed(sts, ROLE))
    for _ in range(2):
        listed = sagemaker.list_model_packages(ModelPackageGroupName="prices")
        assert listed["ModelPackageSummaryList"] == []
    code, message = refusal(sagemaker.delete_model_package_group, ModelPackageGroupName="prices")
    assert code == "AccessDeniedException"
    assert message.startswith(f"User: arn:aws:sts::{OWNER}:assumed-role/registry/")
    asked = [call for call in enforcing.calls(service="sts") if call.request["RoleArn"] == ROLE]
    assert (
        sum(
            call.error_code is None
            for call in asked
            if call.request["RoleSessionName"] == "orchestration"
        )
        == 1
    )


def test_a_machine_that_waits_for_jobs_needs_the_rules_of_its_role(enforcing: EmbeddedAws) -> None:
    arn = role(enforcing, "deaf", allow("sagemaker:*", "*"))
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
        "Arguments": {},
        "End": True,
    }
    machine = {"QueryLanguage": "JSONata", "StartAt": "Train", "States": {"Train": state}}
    code, message = refusal(
        enforcing.client("stepfunctions").create_state_machine,
        name="deaf",
        definition=json.dumps(machine),
        roleArn=arn,
    )
    assert code == "AccessDeniedException"
    assert message == f"'{arn}' is not authorized to create managed-rule."


def test_a_simulation_answers_once_per_action_and_decides_on_each_resource(
    enforcing: EmbeddedAws,
) -> None:
    secure = {"StringEquals": {"aws:SourceVpce": "vpce-1"}}
    statements = [
        allow("s3:*", "*"),
        {**allow("s3:Put*", "arn:aws:s3:::b/two", Condition=secure), "Effect": "Deny"},
    ]
    entry = {
        "ContextKeyName": "aws:SourceVpce",
        "ContextKeyValues": ["vpce-1"],
        "ContextKeyType": "string",
    }
    asked = {
        "PolicyInputList": [json.dumps({"Version": "2012-10-17", "Statement": statements})],
        "ActionNames": ["s3:GetObject", "s3:PutObject"],
    }
    iam = enforcing.client("iam")
    resources = ["arn:aws:s3:::b/one", "arn:aws:s3:::b/two"]
    answer = iam.simulate_custom_policy(**asked, ResourceArns=resources, ContextEntries=[entry])
    read, put = answer["EvaluationResults"]
    assert (read["EvalDecision"], put["EvalDecision"]) == ("allowed", "explicitDeny")
    decided = [
        (each["EvalResourceName"], each["EvalResourceDecision"])
        for each in put["ResourceSpecificResults"]
    ]
    assert decided == list(zip(resources, ["allowed", "explicitDeny"], strict=True))
    read, _ = iam.simulate_custom_policy(**asked)["EvaluationResults"]
    assert (read["EvalResourceName"], read["MissingContextValues"]) == ("*", ["aws:SourceVpce"])
    assert not read.get("ResourceSpecificResults")


LIVE = {"StringEquals": {"states:StateMachineQualifier": "live"}}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (allow("states:StartExecution", ARN), True),
        (allow("states:StartExecution", ARN, Condition=LIVE), True),
        (allow("states:StartExecution", f"{ARN}:live"), False),
    ],
)
def test_an_alias_is_authorised_by_its_state_machine(
    statement: dict[str, Any], expected: bool
) -> None:
    request = {"stateMachineArn": f"{ARN}:live"}
    [need] = needs("stepfunctions", "StartExecution", request, "123456789012", "us-east-1")
    assert allowed(need, statement) is expected
    [plain] = needs(
        "stepfunctions", "StartExecution", {"stateMachineArn": ARN}, "123456789012", "us-east-1"
    )
    assert not allowed(plain, allow("states:StartExecution", ARN, Condition=LIVE))


def test_an_update_that_publishes_needs_both_permissions() -> None:
    request = {"stateMachineArn": ARN, "publish": True}
    wanted = needs("stepfunctions", "UpdateStateMachine", request, "123456789012", "us-east-1")
    actions = ["states:UpdateStateMachine", "states:PublishStateMachineVersion"]
    assert [(need.action, need.resource) for need in wanted] == [(each, ARN) for each in actions]
    route = [{"stateMachineVersionArn": f"{ARN}:3", "weight": 100}]
    for operation, named in (
        ("CreateStateMachineAlias", {"routingConfiguration": route}),
        ("UpdateStateMachineAlias", {"stateMachineAliasArn": f"{ARN}:live"}),
        ("DeleteStateMachineVersion", {"stateMachineVersionArn": f"{ARN}:3"}),
    ):
        [need] = needs("stepfunctions", operation, named, "123456789012", "us-east-1")
        assert (need.action, need.resource) == (f"states:{operation}", ARN)
