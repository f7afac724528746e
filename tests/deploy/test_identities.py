"""Everyone who acts for a pipeline: exactly what its steps touch, with the steps that need it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestration import (
    Checkpoints,
    Cluster,
    Parameter,
    Pipeline,
    S3Channel,
    TrainingJob,
    Vpc,
    join,
    parameter,
)
from orchestration.deploy.identities import WHO, Identity, identities
from orchestration.local.policies.evaluation import Need, allows
from orchestration.stages.endpoints.updates import EndpointUpdate
from orchestration.stages.hosting.components import InferenceComponent
from orchestration.stages.hosting.fields import Asynchronous, DataCapture
from tests.conformance import pipelines as conformance
from tests.deploy import pipelines
from tests.deploy.permissions.possible import possible
from tests.deploy.pipelines import ACCOUNT, IMAGE, PARAMETERS

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PIPELINES: tuple[Callable[[], Pipeline], ...] = (
    conformance.candidates,
    conformance.ending,
    conformance.exporting,
    conformance.file_system,
    conformance.filled,
    conformance.kept,
    conformance.listed,
    conformance.served,
    conformance.synced,
)


def of(pipeline: Pipeline, who: str, **fields: Any) -> Identity:
    every = identities(pipeline, ACCOUNT, parameters={**PARAMETERS, **fields})
    return next(each for each in every if each.who == who)


def resources(identity: Identity, action: str) -> list[str]:
    return [
        resource
        for statement in identity.policy["Statement"]
        if action in statement["Action"]
        for resource in statement["Resource"]
    ]


@pytest.fixture
def digits(tmp_path: Path) -> Pipeline:
    return pipelines.digits(pipelines.source_folder(tmp_path))


def test_jobs_read_and_write_their_own_places_and_no_others(digits: Pipeline) -> None:
    jobs = of(digits, "jobs")
    ((_, source),) = digits.stages[1].sources()
    digest = source.sha256
    assert resources(jobs, "s3:GetObject") == [
        "arn:aws:s3:::workspace/digits/*/staging*",
        "arn:aws:s3:::workspace/digits/*/train/checkpoints*",
        "arn:aws:s3:::workspace/digits/*/train/checkpoints/epoch-*",
        "arn:aws:s3:::workspace/digits/*/train/checkpoints/epoch-*/*",
        f"arn:aws:s3:::workspace/digits/source/{digest}/files*",
        f"arn:aws:s3:::workspace/digits/source/{digest}/sourcedir.tar.gz",
    ]
    assert resources(jobs, "s3:PutObject") == [
        "arn:aws:s3:::workspace/digits/*/evaluate/*/*",
        "arn:aws:s3:::workspace/digits/*/train/checkpoints/*",
        "arn:aws:s3:::workspace/digits/*/train/output/*",
    ]
    assert resources(jobs, "ecr:BatchGetImage") == [
        "arn:aws:ecr:us-east-1:111122223333:repository/train"
    ]
    streams = [arn.partition(":log-group:")[2] for arn in resources(jobs, "logs:PutLogEvents")]
    assert streams == [
        "/aws/sagemaker/Endpoints/digits-deploy:log-stream:*",
        "/aws/sagemaker/ProcessingJobs:log-stream:digits-evaluate-*/*",
        "/aws/sagemaker/TrainingJobs:log-stream:digits-train-*/*",
    ]


def test_a_model_that_a_training_job_wrote_is_read_where_that_job_writes(tmp_path: Path) -> None:
    jobs = of(conformance.served(), "jobs")
    assert "arn:aws:s3:::workspace/served/*/train/checkpoints/step-*/*" in resources(
        jobs, "s3:GetObject"
    )
    assert all(not arn.startswith("arn:aws:s3:::*") for arn in resources(jobs, "s3:GetObject"))


def test_an_endpoint_writes_what_it_captures_and_nothing_else() -> None:
    capture = DataCapture(uri=join("s3://", parameter("bucket"), "/captured"), percent=10)
    request = {"CreateEndpointConfig": {"KmsKeyId": KEY}}
    stage = conformance.deployment(
        "deploy", "s3://models/one/", data_capture=capture, extra_request=request
    )
    pipeline = Pipeline(
        name="captured",
        parameters={"bucket": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/captured"),
        stages=(stage,),
    )
    values = {name: PARAMETERS[name] for name in ("bucket", "role")}
    every = identities(pipeline, ACCOUNT, parameters=values)
    jobs = next(each for each in every if each.who == "jobs")
    assert resources(jobs, "s3:PutObject") == ["arn:aws:s3:::workspace/captured/*"]
    assert resources(jobs, "kms:CreateGrant") == [KEY]
    assert resources(jobs, "kms:GenerateDataKey") == []


def test_the_container_of_a_component_writes_its_own_log_and_metrics() -> None:
    update = EndpointUpdate()
    component = InferenceComponent(name="cats", memory_mib=1024)
    stage = conformance.deployment(
        "deploy",
        "s3://models/one/",
        inference_component=component,
        endpoint_name="e",
        update=update,
    )
    pipeline = Pipeline(
        name="shared",
        parameters={"bucket": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/shared"),
        stages=(stage,),
    )
    values = {name: PARAMETERS[name] for name in ("bucket", "role")}
    every = identities(pipeline, ACCOUNT, parameters=values)
    jobs = next(each for each in every if each.who == "jobs")
    streams = [arn.partition(":log-group:")[2] for arn in resources(jobs, "logs:PutLogEvents")]
    assert streams == [
        "/aws/sagemaker/Endpoints/e:log-stream:*",
        "/aws/sagemaker/InferenceComponents/cats:log-stream:*",
    ]
    namespaces = [
        each["Condition"]["StringEquals"]["cloudwatch:namespace"]
        for each in jobs.policy["Statement"]
        if "cloudwatch:PutMetricData" in each["Action"]
    ]
    assert "/aws/sagemaker/InferenceComponents" in str(namespaces)


def test_a_queue_is_served_with_its_keys_topics_and_requests() -> None:
    topics = [f"arn:aws:sns:us-east-1:{ACCOUNT.id}:{name}" for name in ("answers", "failures")]
    queue = Asynchronous(
        output_uri=join("s3://", parameter("bucket"), "/answers"),
        success_topic=topics[0],
        error_topic=topics[1],
        kms_key=KEY,
    )
    stage = conformance.deployment("deploy", "s3://models/one/", asynchronous=queue)
    pipeline = Pipeline(
        name="queued",
        parameters={"bucket": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/queued"),
        stages=(stage,),
    )
    values = {name: PARAMETERS[name] for name in ("bucket", "role")}
    every = {each.who: each for each in identities(pipeline, ACCOUNT, parameters=values)}
    jobs = every["jobs"]
    assert resources(jobs, "sns:Publish") == topics
    asked = "arn:aws:s3:::workspace/queued/*/deploy/smoke_test.json"
    assert asked in resources(jobs, "s3:GetObject")
    assert resources(jobs, "s3:PutObject") == ["arn:aws:s3:::workspace/answers/*"]
    assert resources(jobs, "kms:GenerateDataKey") == [KEY]
    # Who reads the answer decrypts it.
    for who in ("machine", "airflow"):
        explained = every[who].explained()
        [reading] = [(each, by) for each, by in explained if "kms:Decrypt" in each["Action"]]
        assert (reading[0]["Resource"], reading[1]) == ([KEY], ["deploy.answer"])


def private(**fields: Any) -> Pipeline:
    """Training with keys in a private network."""
    train = TrainingJob(
        name="train",
        image=IMAGE,
        channels={"training": S3Channel(uri=parameter("data"))},
        cluster=Cluster(instance_type="ml.c5.xlarge", volume_kms_key=KEY),
        checkpoints=Checkpoints(),
        extra_request={"OutputDataConfig": {"KmsKeyId": KEY}},
        vpc=Vpc(subnets=("subnet-0123456789abcdef0",), security_groups=("sg-0123456789abcdef0",)),
    )
    return Pipeline(
        name="private",
        parameters={"bucket": Parameter(), "data": Parameter()},
        workspace=join("s3://", parameter("bucket"), "/private"),
        stages=(train,),
        **fields,
    )


def test_jobs_join_their_own_subnets_and_use_their_own_keys() -> None:
    jobs = of(private(), "jobs")
    place = "arn:aws:ec2:us-east-1:123456789012"
    assert resources(jobs, "ec2:CreateNetworkInterface") == [
        f"{place}:network-interface/*",
        f"{place}:security-group/sg-0123456789abcdef0",
        f"{place}:subnet/subnet-0123456789abcdef0",
    ]
    assert resources(jobs, "kms:CreateGrant") == [KEY]
    [data] = [s for s in jobs.policy["Statement"] if "kms:GenerateDataKey" in s["Action"]]
    assert data["Resource"] == [KEY]
    assert data["Condition"] == {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}


def test_every_statement_names_the_steps_that_need_it(digits: Pipeline) -> None:
    named = {statement["Sid"]: steps for statement, steps in of(digits, "machine").explained()}
    assert named["TrainingJobs"] == ["train.job"]
    assert named["PassRoleToSageMaker"] == ["deploy.model", "evaluate.each.job", "train.job"]
    for identity in identities(digits, ACCOUNT, parameters=PARAMETERS):
        assert all(steps for _, steps in identity.explained()), identity.who


def test_the_companion_names_the_steps_that_leave_something(digits: Pipeline) -> None:
    stopping = {
        action: steps
        for statement, steps in of(digits, "companion").explained()
        for action in statement["Action"]
    }
    assert stopping["sagemaker:StopTrainingJob"] == ["train.job"]
    assert stopping["states:DescribeExecution"] == ["every run"]


def test_roles_may_be_handed_to_the_services_of_their_trust_alone() -> None:
    deployer = of(conformance.served(), "deployer")
    for statement in deployer.policy["Statement"]:
        if "iam:PassRole" in statement["Action"]:
            assert statement["Condition"]["StringEquals"]["iam:PassedToService"]
            assert all(arn.startswith("arn:aws:iam::") for arn in statement["Resource"])
    assert resources(deployer, "iam:CreateRole") == [
        f"arn:aws:iam::123456789012:role/served-us-east-1-{name}"
        for name in ("companion", "states", "sweep")
    ]


def test_each_role_is_for_one_source_of_this_account() -> None:
    for identity in identities(conformance.served(), ACCOUNT, parameters=PARAMETERS):
        for statement in identity.trust.get("Statement", ()):
            condition = statement["Condition"]
            assert condition["StringEquals"] == {"aws:SourceAccount": ACCOUNT.id}
            assert f":{ACCOUNT.id}:" in condition["ArnLike"]["aws:SourceArn"]


def test_what_only_a_run_knows_is_said(digits: Pipeline) -> None:
    every = identities(digits, ACCOUNT, parameters=PARAMETERS, unrestricted=["data"])
    pipeline = private()
    jobs = next(
        each
        for each in identities(pipeline, ACCOUNT, parameters=PARAMETERS, unrestricted=["data"])
        if each.who == "jobs"
    )
    assert jobs.notes == (
        "train.job: it reads a bucket that only a run knows; add s3 actions for it yourself",
    )
    assert all(not each.notes for each in every)


def findings(documents: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Return what cfn-lint finds wrong with policies and trusts."""
    from cfnlint.api import lint
    from cfnlint.config import ManualArgs

    anyone = {"Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    usual = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **anyone}]}
    template: dict[str, Any] = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {}}
    for number, (policy, trust) in enumerate(documents):
        role = {"AssumeRolePolicyDocument": trust or usual}
        template["Resources"][f"Role{number}"] = {"Type": "AWS::IAM::Role", "Properties": role}
        template["Resources"][f"Policy{number}"] = {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyName": "least",
                "PolicyDocument": policy,
                "Roles": [{"Ref": f"Role{number}"}],
            },
        }
    # I3042 wants references to the account, which these policies are computed for.
    args = ManualArgs(include_checks=["I"], ignore_checks=["I3042"], regions=["us-east-1"])
    found = [str(match) for match in lint(json.dumps(template), config=args)]
    # cfn-lint 1.58 does not take ${AccountId}, as its data calls DataSync's, for a placeholder.
    return [text for text in found if "${AccountId}" not in text]


@pytest.mark.parametrize("make", [conformance.served, conformance.candidates])
def test_airflow_may_make_every_call_read_logs_and_stop_what_still_runs(
    make: Callable[[], Pipeline],
) -> None:
    pipeline = make()
    policy = of(pipeline, "airflow").policy
    calls = list(possible(pipeline))
    assert len(calls) > 15
    assert [need for need in calls if not allows([policy], need)] == []
    group = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/TrainingJobs"
    name = "small" if pipeline.name == "candidates" else "train"
    stream = f"{group}:log-stream:{pipeline.name}-{name}-0123456789ab/algo-1-1"
    job = f"arn:aws:sagemaker:us-east-1:123456789012:training-job/{pipeline.name}-{name}-x"
    for need in (
        Need("logs:DescribeLogStreams", f"{group}:log-stream:"),
        Need("logs:GetLogEvents", stream),
        Need("sagemaker:ListTrainingJobs", "*"),
        Need("sagemaker:StopTrainingJob", job),
    ):
        assert allows([policy], need), need
    others = stream.replace(f":{pipeline.name}-", ":others-")
    assert not allows([policy], Need("logs:GetLogEvents", others))


def test_cfn_lint_finds_nothing_in_policies_and_trusts() -> None:
    every = [
        (identity.policy, dict(identity.trust))
        for make in (*PIPELINES, private)
        for identity in identities(make(), ACCOUNT, parameters=PARAMETERS)
    ]
    assert findings(every) == []
    policy, trust = every[0]
    [first, *_] = policy["Statement"]
    wrong = [{**first, "Action": ["sagemaker:CreateTrainingJobs"]}]
    assert "createtrainingjobs" in str(findings([({**policy, "Statement": wrong}, trust)]))
    wrong = [{**first, "Resource": ["arn:aws:sqs:us-east-1:123456789012:queue"]}]
    assert "requires a resource" in str(findings([({**policy, "Statement": wrong}, trust)]))


def test_everyone_has_a_name(digits: Pipeline) -> None:
    found = [each.who for each in identities(digits, ACCOUNT, parameters=PARAMETERS)]
    assert list(dict.fromkeys(found)) == [who for who in WHO if who in found]
