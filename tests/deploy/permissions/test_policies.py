"""The role's policy: narrow, whole, and made of permissions that exist."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from orchestration import (
    CheckpointEvaluation,
    DataStaging,
    Deployment,
    Pipeline,
    S3Destination,
    parameter,
)
from orchestration.deploy import permissions
from orchestration.deploy.composing import desired
from orchestration.deploy.permissions import derived as reference
from orchestration.deploy.permissions import operations
from orchestration.deploy.permissions.statements import Statement, merged
from orchestration.errors import DeployError, UnsupportedError
from orchestration.expressions import Json, evaluate, join, run_id
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Graph, Operation, Permission, Step, Workflow, all_steps
from tests.airflow.workflows import falling_back, workflow
from tests.deploy import pipelines
from tests.deploy.permissions.policy import denied
from tests.deploy.pipelines import ACCOUNT, PARAMETERS

OWN = {"orchestration:pipeline": "lustre"}
SYNC = frozenset(operations.SYNCHRONOUS)
KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd"


@pytest.fixture(params=["digits", "lustre"])
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Pipeline:
    if request.param == "lustre":
        return pipelines.lustre(extra_request={"KmsKeyId": KEY})
    return pipelines.digits(pipelines.source_folder(tmp_path))


@pytest.fixture
def digits(tmp_path: Path) -> Pipeline:
    return pipelines.digits(pipelines.source_folder(tmp_path))


def policy(pipeline: Pipeline, **changed: Any) -> dict[str, Any]:
    return permissions.policy(
        pipeline.lower(), ACCOUNT, [{**PARAMETERS, **changed}], synchronous=SYNC
    )


def statement(document: Mapping[str, Any], action: str) -> list[dict[str, Any]]:
    return [s for s in document["Statement"] if action in s["Action"]]


def resources(document: Mapping[str, Any], action: str) -> list[str]:
    return [r for s in statement(document, action) for r in s["Resource"]]


class Results(Values):
    """Whatever a step gives, so that every request of a graph can be written out."""

    def result(self, step: str, output: str) -> Any:
        listed = {
            "staging.list": "set/a b.csv",
            "evaluate.list": f"digits/{RUN}/train/checkpoints/",
        }
        if step in listed:
            row = {"Key": listed[step], "ETag": '"x"', "Size": 1}
            return [{**row, "Prefix": f"{listed[step]}epoch-1/"}]
        if output == "items":
            checkpoint = f"s3://workspace/digits/{RUN}/train/checkpoints/epoch-1/"
            return [{"checkpoint": checkpoint, "metric": 1}]
        if output == "targets":
            return []
        return "fs-0123456789abcdef0"


RUN = "0123456789ab"


def sent(workflow: Workflow, to: str = "") -> Iterator[tuple[Operation, dict[str, Any]]]:
    prefix = f"digits/{RUN}/train/checkpoints/epoch-1/"
    item: Json = {"Key": "set/a b.csv", "ETag": "x", "Size": 1, "Prefix": prefix}
    values = Results({}, {**PARAMETERS}, RUN, item)
    for step in all_steps(workflow.graph):
        for operation in _operations(step):
            if to not in ("", operation.service):
                continue
            request = evaluate(operation.request, values)
            assert isinstance(request, dict)
            yield operation, request


def _operations(step: Step) -> Iterator[Operation]:
    if isinstance(step, Call):
        yield step.operation
        if step.until is not None:
            yield step.until.poll
            if step.until.stop is not None:
                yield step.until.stop


def test_everything_that_a_graph_sends_is_allowed(pipeline: Pipeline) -> None:
    workflow = pipeline.lower()
    document = policy(pipeline)
    calls = list(sent(workflow))
    assert len(calls) > 4
    for operation, request in calls:
        assert (
            denied(
                document,
                operation.service,
                operation.name,
                request,
                ACCOUNT.id,
                ACCOUNT.region,
                resource_tags=OWN,
            )
            == []
        )


@pytest.mark.parametrize("changed", ["bucket", "data", "role"])
def test_other_buckets_and_roles_are_refused(digits: Pipeline, changed: str) -> None:
    other = {"bucket": "elsewhere", "data": "s3://elsewhere/set", "role": "arn:aws:iam::1:role/a"}
    document = policy(digits, **{changed: other[changed]})
    refused = [
        need
        for operation, request in sent(digits.lower())
        for need in denied(
            document, operation.service, operation.name, request, ACCOUNT.id, ACCOUNT.region
        )
    ]
    assert refused != []


def test_resources_are_as_narrow_as_the_derived_names(digits: Pipeline) -> None:
    document = policy(digits)
    arn = "arn:aws:sagemaker:us-east-1:123456789012:"
    assert resources(document, "sagemaker:CreateTrainingJob") == [
        f"{arn}training-job/digits-train-*"
    ]
    assert resources(document, "sagemaker:CreateProcessingJob") == [
        f"{arn}processing-job/digits-evaluate-*"
    ]
    assert resources(document, "sagemaker:CreateModel") == [f"{arn}model/digits-deploy-e33f-*"]
    assert resources(document, "sagemaker:InvokeEndpoint") == [f"{arn}endpoint/digits-deploy"]
    assert resources(document, "s3:PutObject") == ["arn:aws:s3:::workspace/digits/*/staging/*"]
    assert resources(document, "s3:GetObjectTagging") == ["arn:aws:s3:::incoming/set/*"]
    assert resources(document, "iam:PassRole") == [PARAMETERS["role"]]


def test_every_alternative_of_a_call_is_allowed() -> None:
    made = permissions.policy(workflow(falling_back("train.job")), ACCOUNT, [{}])
    prefix = "arn:aws:sagemaker:us-east-1:123456789012:training-job"
    for action in ("Create", "Describe", "Stop"):
        found = resources(made, f"sagemaker:{action}TrainingJob")
        assert found == [f"{prefix}/base", f"{prefix}/base-b", f"{prefix}/base-c"]


def test_names_in_upper_case_are_allowed_as_their_arns_are_written(tmp_path: Path) -> None:
    code = pipelines.source_folder(tmp_path)
    document = policy(pipelines.digits(code, endpoint_name="MyEndpoint"))
    arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"
    assert resources(document, "sagemaker:InvokeEndpoint") == [
        f"{arn}MyEndpoint",
        f"{arn}myendpoint",
    ]


def test_values_of_several_conditions_are_not_mixed() -> None:
    def one(first: str, second: str) -> Statement:
        condition = (
            ("StringEquals", "a", frozenset([first])),
            ("StringEquals", "b", frozenset([second])),
        )
        return Statement("S", frozenset(["s3:GetObject"]), frozenset(["*"]), condition)

    assert len(merged([one("1", "2"), one("3", "4"), one("1", "2")])) == 2


def test_only_the_endpoint_is_tagged_anew() -> None:
    deploy = {
        "kind": "deployment",
        "model_data": "s3://bucket/model",
        "image": "image:1",
        "instance_type": "ml.m5.large",
        "endpoint_name": "Shop",
        "update": {},
        "tags": {"team": "shop"},
    }
    stages = {"deploy": deploy}
    tagged = Pipeline.parse({"name": "p", "workspace": "s3://bucket/w", "stages": stages})
    tagging = resources(policy(tagged), "sagemaker:AddTags")
    place = f"arn:aws:sagemaker:{ACCOUNT.region}:{ACCOUNT.id}"
    assert f"{place}:endpoint/shop" in tagging
    assert {arn.removeprefix(place).split("/")[0] for arn in tagging} == {
        ":endpoint",
        ":endpoint-config",
        ":model",
    }


@pytest.mark.parametrize(
    "scaled",
    [
        {"autoscaling": {"max_instances": 4, "invocations_per_minute": 60}},
        {
            "inference_component": {
                "name": "Cats",
                "memory_mib": 1024,
                "autoscaling": {"max_copies": 4, "invocations_per_minute": 60},
            }
        },
    ],
)
def test_who_scales_may_have_the_alarms_that_scaling_makes(scaled: dict[str, Any]) -> None:
    deploy = {
        "kind": "deployment",
        "model_data": "s3://bucket/model",
        "image": "image:1",
        "instance_type": "ml.m5.large",
        "endpoint_name": "Shop",
        "update": {},
        **scaled,
    }
    stages = {"deploy": deploy}
    pipeline = Pipeline.parse({"name": "p", "workspace": "s3://bucket/w", "stages": stages})
    document = policy(pipeline)
    asked = {
        operation.name: denied(
            document, operation.service, operation.name, request, ACCOUNT.id, ACCOUNT.region
        )
        for operation, request in sent(pipeline.lower(), "application-autoscaling")
    }
    assert {"RegisterScalableTarget", "PutScalingPolicy"} <= asked.keys()
    assert not any(asked.values()), asked


def test_listing_is_held_to_the_prefixes_of_the_graph(digits: Pipeline) -> None:
    listed = {
        s["Resource"][0]: s["Condition"]["StringLike"]["s3:prefix"]
        for s in statement(policy(digits), "s3:ListBucket")
    }
    assert listed == {
        "arn:aws:s3:::incoming": "set/",
        "arn:aws:s3:::workspace": [
            "digits/*/staging/",
            "digits/*/train/checkpoints/epoch-",
            "digits/*/train/checkpoints/epoch-*/",
        ],
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"report": {"image": pipelines.IMAGE}},
        {"report": {"image": pipelines.IMAGE}, "select": {"last": 3}},
        {
            "report": {"image": pipelines.IMAGE},
            "select": {"best": {"count": 2, "metric": "loss", "direction": "min"}},
        },
    ],
)
def test_whoever_deploys_the_best_lists_the_evaluated_checkpoints_only(
    digits: Pipeline, fields: dict[str, Any]
) -> None:
    judged = {"name": "judge", "metric": "loss", "direction": "min", "recorded": "metrics.json"}
    checkpoints = join("s3://", parameter("bucket"), "/tried")
    judge = CheckpointEvaluation.model_validate({**judged, "checkpoints": checkpoints, **fields})
    deployment = Deployment(
        name="deploy",
        model_data=judge.outputs.best_checkpoint,
        image=pipelines.IMAGE,
        endpoint_name="live",
        instance_type="ml.m5.large",
    )
    pipeline = digits.model_copy(update={"stages": (judge, deployment)})
    listed = statement(policy(pipeline), "s3:ListBucket")
    assert [each["Resource"] for each in listed] == [["arn:aws:s3:::workspace"]]
    assert listed[0]["Condition"]["StringLike"]["s3:prefix"] == ["tried/", "tried/*/"]


SEARCH: dict[str, Any] = {
    "kind": "tuning_job",
    "image": pipelines.IMAGE,
    "cluster": {"instance_type": "ml.m5.large"},
    "checkpoints": {},
    "objective": {"metric": "score", "direction": "max", "regex": "score=([0-9.]+)"},
    "ranges": {"rate": {"categorical": [0.1, 0.5]}},
    "limits": {"jobs": 2, "parallel": 2},
}
RANKED: dict[str, Any] = {
    "kind": "checkpoint_evaluation",
    "tuning_job": {"ref": "tune.tuning_job_name"},
    "data": "s3://workspace/held-out/",
    "image": pipelines.IMAGE,
    "command": ["judge"],
    "instance_type": "ml.m5.large",
    "metric": "score",
    "direction": "max",
}
PRINTED: dict[str, Any] = {
    "kind": "checkpoint_evaluation",
    "training_job": {"ref": "tune.job_name"},
    "metric": "score",
    "direction": "max",
}
ENDING: dict[str, Any] = {"threshold": {"value": 0.9, "on_miss": "stop"}}


@pytest.mark.parametrize(
    ("stages", "model", "place"),
    [
        ({}, "tune.model_artifacts", "tune/output/*"),
        ({}, "tune.checkpoints", "tune/checkpoints*/"),
        ({"judge": RANKED}, "judge.model", "tune/output/*"),
        ({"judge": {**RANKED, **ENDING}}, "judge.model", "tune/output/*"),
        ({"judge": {**RANKED, "report": {}}}, "judge.model", "tune/output/*"),
        ({"judge": PRINTED}, "judge.model", "tune/output/*"),
    ],
)
def test_whoever_deploys_the_best_of_a_search_reads_where_its_jobs_write(
    stages: dict[str, Any], model: str, place: str
) -> None:
    deploy = {
        "kind": "deployment",
        "model_data": {"ref": model},
        "model_archive": not model.endswith("checkpoints"),
        "image": pipelines.IMAGE,
        "endpoint_name": "live",
        "instance_type": "ml.m5.large",
    }
    stages = {"tune": SEARCH, **stages, "deploy": deploy}
    document = {"name": "p", "workspace": "s3://workspace/p", "stages": stages}
    whole = policy(Pipeline.parse(document))
    read = resources(whole, "s3:GetObject")
    listed = [s["Condition"]["StringLike"]["s3:prefix"] for s in statement(whole, "s3:ListBucket")]
    assert f"arn:aws:s3:::workspace/p/*/{place}" in read or f"p/*/{place}" in listed
    assert not [arn for arn in read if arn.startswith("arn:aws:s3:::*")]


def test_file_systems_of_others_can_not_be_deleted() -> None:
    document = policy(pipelines.lustre())
    request = {"FileSystemId": "fs-1"}
    call = (document, "fsx", "DeleteFileSystem", request, ACCOUNT.id, ACCOUNT.region)
    assert denied(*call, resource_tags=OWN) == []
    assert denied(*call, resource_tags={"orchestration:pipeline": "other"}) != []
    assert denied(*call) != []


def test_wildcards_are_only_where_nothing_else_is_possible(pipeline: Pipeline) -> None:
    wide = {
        action
        for s in policy(pipeline)["Statement"]
        if "*" in s["Resource"]
        for action in s["Action"]
    }
    described = ("FileSystems", "DataRepositoryAssociations", "DataRepositoryTasks")
    targets = "application-autoscaling:DescribeScalableTargets"
    assert wide <= {targets, *(f"fsx:Describe{what}" for what in described)}


def test_a_role_that_may_be_any_is_one_of_the_account_and_for_sagemaker(digits: Pipeline) -> None:
    [passed] = statement(policy(digits, role=None), "iam:PassRole")
    assert passed["Resource"] == ["arn:aws:iam::123456789012:role/*"]
    assert passed["Condition"] == {
        "StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}
    }


def test_rules_of_eventbridge_are_only_granted_for_sync(digits: Pipeline) -> None:
    rule = "arn:aws:events:us-east-1:123456789012:rule/StepFunctionsGetEventsForSageMaker"
    waited = permissions.policy(
        digits.lower(), ACCOUNT, [PARAMETERS], synchronous=frozenset(["createTrainingJob"])
    )
    assert resources(waited, "events:PutRule") == [f"{rule}TrainingJobsRule"]
    polled = permissions.policy(digits.lower(), ACCOUNT, [PARAMETERS])
    assert statement(polled, "events:PutRule") == []


def test_keys_are_granted_where_a_request_names_one(digits: Pipeline) -> None:
    assert statement(policy(digits), "kms:CreateGrant") == []
    keyed = policy(pipelines.lustre(extra_request={"KmsKeyId": KEY}))
    assert resources(keyed, "kms:CreateGrant") == [KEY]


def test_a_key_may_be_given_by_its_alias() -> None:
    [named] = statement(
        policy(pipelines.lustre(extra_request={"KmsKeyId": "alias/training"})), "kms:CreateGrant"
    )
    assert named["Condition"] == {
        "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/training"}
    }


def copying(**destination: Any) -> Pipeline:
    staging = DataStaging(
        name="staging", source="s3://incoming/set", destination=S3Destination(**destination)
    )
    role = PARAMETERS["role"]
    return Pipeline(name="copying", role=role, workspace="s3://workspace/p", stages=[staging])


def test_keys_of_copies_are_used_through_s3_only() -> None:
    elsewhere = "arn:aws:kms:eu-west-1:999988887777:key/5678efab"
    through = "s3.{}.amazonaws.com".format
    document = policy(copying(kms_key=KEY, source_kms_key=elsewhere))
    [encrypting] = statement(document, "kms:GenerateDataKey")
    assert encrypting["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert encrypting["Resource"] == [KEY]
    assert encrypting["Condition"]["StringEquals"]["kms:ViaService"] == through("us-east-1")
    [decrypting] = [s for s in statement(document, "kms:Decrypt") if s != encrypting]
    assert decrypting["Action"] == ["kms:Decrypt"]
    assert decrypting["Resource"] == [elsewhere]
    assert decrypting["Condition"]["StringEquals"]["kms:ViaService"] == through("eu-west-1")
    [named] = statement(policy(copying(kms_key="alias/data")), "kms:GenerateDataKey")
    assert named["Condition"] == {
        "StringEquals": {"kms:ViaService": through("us-east-1")},
        "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/data"},
    }
    assert statement(policy(copying()), "kms:Decrypt") == []


def test_every_missing_parameter_is_named_at_once(digits: Pipeline) -> None:
    with pytest.raises(DeployError) as caught:
        permissions.policy(digits.lower(), ACCOUNT, [{}])
    assert all(f"'{name}'" in str(caught.value) for name in ("bucket", "data", "role"))


def derived(*operations: Operation, **fields: Any) -> dict[str, Any]:
    """The policy of a workflow that makes calls."""
    steps = (Call(name=f"some.step{n}", operation=o) for n, o in enumerate(operations))
    whole = Workflow(name="w", graph=Graph(tuple(steps)), **fields)
    return permissions.policy(whole, ACCOUNT, [{}])


GLUE = "arn:aws:glue:us-east-1:123456789012:job"
LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function"
TOPIC = "arn:aws:sns:us-east-1:123456789012:news"


@pytest.mark.parametrize(
    ("operation", "action", "allowed"),
    [
        (
            Operation("glue", "StartJobRun", {"JobName": "it*"}),
            "glue:StartJobRun",
            f"{GLUE}/it${{*}}",
        ),
        (
            Operation("lambda", "Invoke", {"FunctionName": join("f-", run_id())}),
            "lambda:InvokeFunction",
            f"{LAMBDA}:f-*",
        ),
        (
            Operation("lambda", "Invoke", {"FunctionName": f"{LAMBDA}:f"}),
            "lambda:InvokeFunction",
            f"{LAMBDA}:f",
        ),
        (Operation("sns", "Publish", {"TopicArn": TOPIC, "Message": "m"}), "sns:Publish", TOPIC),
        (
            Operation("sns", "Publish", {"TopicArn": join(TOPIC, run_id()), "Message": "m"}),
            "sns:Publish",
            f"{TOPIC}*",
        ),
        (
            Operation("sns", "Publish", {"TopicArn": run_id(), "Message": "m"}),
            "sns:Publish",
            "arn:aws:sns:*:*:*",
        ),
        (
            Operation("sns", "Publish", {"TopicArn": join(run_id(), ":t"), "Message": "m"}),
            "sns:Publish",
            "arn:aws:sns:*:*:*",
        ),
        (
            Operation("secretsmanager", "GetSecretValue", {"SecretId": "s"}),
            "secretsmanager:GetSecretValue",
            "arn:aws:secretsmanager:us-east-1:123456789012:secret:s-??????",
        ),
        (
            Operation("athena", "GetQueryExecution", {"QueryExecutionId": "q"}),
            "athena:GetQueryExecution",
            "arn:aws:athena:us-east-1:123456789012:workgroup/*",
        ),
        (
            Operation("sts", "DecodeAuthorizationMessage", {"EncodedMessage": "m"}),
            "sts:DecodeAuthorizationMessage",
            "*",
        ),
    ],
)
def test_an_operation_without_a_row_gets_what_the_reference_says(
    operation: Operation, action: str, allowed: str
) -> None:
    assert allowed in resources(derived(operation), action)


def test_nobody_needs_a_permission_to_ask_who_they_are() -> None:
    assert derived(Operation("sts", "GetCallerIdentity", {}))["Statement"] == []


def test_a_statement_that_another_one_covers_is_left_out() -> None:
    condition = (("StringLike", "s3:prefix", frozenset(["set/"])),)
    one = frozenset(["s3:ListBucket"]), frozenset(["arn:aws:s3:::a"])
    narrow = Statement("List", *one, condition).by("staging.list")
    wide = Statement("Reach", one[0] | {"s3:GetBucketLocation"}, one[1]).by("staging.source")
    [left] = merged([narrow, wide])
    assert left.sid == "Reach"
    assert left.needed_by == {"staging.list", "staging.source"}
    other = Statement("List", one[0], frozenset(["arn:aws:s3:::b"]), condition)
    assert len(merged([other, wide])) == 2


def test_an_operation_without_a_row_hands_its_role_to_its_own_service_only() -> None:
    role = "arn:aws:iam::123456789012:role/loader"
    call = Operation("emr-serverless", "StartJobRun", {"executionRoleArn": role})
    [passing] = statement(derived(call), "iam:PassRole")
    assert passing["Resource"] == [role]
    assert passing["Condition"] == {
        "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}
    }


def test_a_topic_that_logs_no_deliveries_is_made_without_a_role() -> None:
    plain = derived(Operation("sns", "CreateTopic", {"Name": "news"}))
    [own] = plain["Statement"]
    assert (own["Action"], own["Resource"]) == (["sns:CreateTopic"], [TOPIC])
    role = "arn:aws:iam::123456789012:role/logs"
    logged = {"LambdaSuccessFeedbackRoleArn": role}
    logging = Operation("sns", "CreateTopic", {"Name": "news", "Attributes": logged, "Tags": []})
    written = derived(logging)
    [passing] = statement(written, "iam:PassRole")
    assert passing["Resource"] == [role]
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "sns.amazonaws.com"}}
    assert resources(written, "sns:TagResource") == [TOPIC]


def test_operations_that_nobody_knows_the_permissions_of_are_all_refused() -> None:
    unknown = (Operation("sns", "Shout", {}), Operation("nimbus", "Rain", {}))
    hidden = Operation("ecs", "RunTask", {"taskDefinition": "t"})
    with pytest.raises(UnsupportedError) as caught:
        derived(*unknown, hidden)
    for text in ("some.step0: ", "sns:Shout", "nimbus:Rain", "ecs:RunTask may pass a role"):
        assert text in str(caught.value)


def test_a_stage_says_what_it_needs_beside_its_operations() -> None:
    passing = Permission(
        actions=("iam:PassRole",), resources=("arn:{partition}:iam::{account}:role/task-*",)
    )
    bucket = join("arn:aws:s3:::data-", run_id(), "/a?")
    needs = (passing, Permission(actions=("s3:PutObject",), resources=(bucket,)))
    hidden = Operation("ecs", "RunTask", {"taskDefinition": "t"})
    made = derived(hidden, permissions={"load_all": needs})
    assert resources(made, "iam:PassRole") == ["arn:aws:iam::123456789012:role/task-*"]
    assert resources(made, "s3:PutObject") == ["arn:aws:s3:::data-*/a${?}"]
    assert {s["Sid"] for s in statement(made, "s3:PutObject")} == {"LoadAll2"}


def test_the_reference_has_what_policy_sentry_has() -> None:
    from policy_sentry.querying.actions import get_action_data

    calls = [("athena", "StartQueryExecution"), ("glue", "StartJobRun"), ("batch", "SubmitJob")]
    for service, operation in calls:
        row = reference.row(service, operation)
        assert row is not None
        [rows] = get_action_data(service, operation).values()
        formats = {str(r["resource_arn_format"]) for r in rows} - {"*"}
        assert len(row.resources) == len(formats)


def test_a_request_that_leaves_its_resources_open_is_refused() -> None:
    whole = Operation("s3", "ListObjectsV2", {"Bucket": "b"})
    graph = Graph((Call(name="some.list", operation=whole),))
    with pytest.raises(UnsupportedError, match=r"some\.list: s3:ListObjectsV2 without Prefix"):
        permissions.policy(Workflow(name="w", graph=graph), ACCOUNT, [{}])


def test_statements_are_called_differently(pipeline: Pipeline) -> None:
    sids = [s["Sid"] for s in policy(pipeline)["Statement"]]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)


def test_a_policy_is_the_same_every_time(pipeline: Pipeline) -> None:
    assert json.dumps(policy(pipeline)) == json.dumps(policy(pipeline))


# Actions that are not called as the operations they are for.
_NO_OPERATION = {"s3:ListBucket", "iam:PassRole"}


def every_action() -> set[str]:
    rows = [*operations.OPERATIONS.values(), *operations.SYNCHRONOUS.values()]
    granted = {action for row in rows for grant in row for action in grant.actions}
    keys = {action for grant in operations.KEYS.values() for action in grant.actions}
    passed = {action for grant in operations.PASSED.values() for action in grant.actions}
    return granted | keys | passed


@pytest.mark.parametrize("action", sorted(every_action() - _NO_OPERATION))
def test_every_action_is_an_operation_of_botocore(action: str) -> None:
    service, _, name = action.partition(":")
    session = botocore.session.get_session()
    others = {"sagemaker": ["sagemaker-runtime"], "s3": ["s3control"]}
    clients = [service, *others.get(service, [])]
    known = {n for c in clients for n in session.get_service_model(c).operation_names}
    assert name in known


def test_every_row_is_for_an_operation_of_botocore() -> None:
    session = botocore.session.get_session()
    for service, name in operations.OPERATIONS:
        assert name in session.get_service_model(service).operation_names


def test_no_row_repeats_the_reference() -> None:
    for (service, name), row in operations.OPERATIONS.items():
        fields = {field: "x" for grant in row for field in grant.fields()}
        derived = reference.grants(Operation(service, name, fields))
        granted, known = (
            {
                (action, resource, str(grant.condition))
                for grant in grants
                for action in grant.actions
                for resource in grant.resources
            }
            for grants in (row, derived)
        )
        # The reference has the one pass a role and the other ask a component, and few requests do.
        same = ("CreateEndpointConfig", "InvokeEndpoint")
        assert granted != known or name in same, (service, name)


def test_every_row_has_its_source() -> None:
    rows = [*operations.OPERATIONS.values(), *operations.SYNCHRONOUS.values()]
    pages = {grant.source for row in rows for grant in row}
    assert all(page.startswith("https://docs.aws.amazon.com/") for page in pages)


def test_a_role_may_read_what_belongs_to_any_time() -> None:
    made = Pipeline.parse(
        {
            "name": "weekly",
            "region": ACCOUNT.region,
            "workspace": "s3://bucket/runs",
            "parameters": {"until": {}},
            "schedule": {"cron": "0 6 * * MON", "time_parameter": "until"},
            "stages": {
                "look": {
                    "kind": "aws_call",
                    "service": "s3",
                    "operation": "GetObject",
                    "request": {
                        "Bucket": "data",
                        "Key": {
                            "join": [
                                "week/",
                                {"time_text": {"of": {"parameter": "until"}, "format": "%Y/%m"}},
                                "/rows.csv",
                            ]
                        },
                    },
                }
            },
        }
    )
    role = desired(made, ACCOUNT).role
    assert role is not None
    assert resources(role.policy, "s3:GetObject") == ["arn:aws:s3:::data/week/*/rows.csv"]
