"""A model is registered once, decided upon by a person or a rule, on every driver alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy import desired
from orchestration.deploy.account import Account
from orchestration.deploy.other_accounts import warnings
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from orchestration.local.run.report import RunReport
from orchestration.stages.people.places import Decision
from tests.conformance import normal

pytestmark = pytest.mark.slow

MODEL = Path(__file__).parents[2] / "examples" / "release" / "model"
IMAGE = "orchestration.local/pytorch:2"
Answer = tuple[Decision, str]
ON: tuple[On, ...] = ("direct", "step-functions", "airflow")
LOST = Fault(
    "sagemaker", "CreateModelPackage", "InternalFailure", "lost", status=500, after_effect=True
)
REGISTER: dict[str, Any] = {
    "kind": "model_registration",
    "package_group": "prices",
    "model_data": "s3://registry/model",
    "image": IMAGE,
    "description": "Prices of {{ flats }}.",
    "code_digest": "c0de",
    "data_fingerprint": "da7a",
    "training_job": "prices-train",
    "report": "s3://registry/report.json",
    "metadata": {"accuracy": {"parameter": "accuracy"}},
    "approve_when": {"at_least": [{"parameter": "accuracy"}, 0.9]},
}


def pipeline(**stages: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "prices",
            "region": "us-east-1",
            "parameters": {"accuracy": {"type": "number"}},
            "workspace": "s3://registry/runs",
            "stages": {"register": REGISTER, **stages},
        }
    )


ASKED: dict[str, Any] = {
    "sign_off": {
        "kind": "approval",
        "question": {"join": ["Approve ", {"ref": "register.model_package"}, "?"]},
        "on_reject": "go_on",
    },
    "decide": {
        "kind": "model_approval",
        "model_package": {"ref": "register.model_package"},
        "approved": {"ref": "sign_off.approved"},
        "description": {"ref": "sign_off.comment"},
    },
}


def says(answer: Answer) -> Any:
    return lambda _stage, _question: answer


def versions(aws: EmbeddedAws) -> list[dict[str, Any]]:
    return list(aws.state()["sagemaker"]["ModelPackages"].values())


def registered(
    aws: EmbeddedAws, on: On, airflow: LocalAirflow | None, answer: Answer | None, accuracy: float
) -> RunReport:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="registry")
    s3.put_object(Bucket="registry", Key="model/weights", Body=b"1")
    aws.inject(LOST)
    return run(
        pipeline(**(ASKED if answer else {})),
        on=on,
        aws=aws,
        airflow=airflow,
        parameters={"accuracy": accuracy},
        run_id="once",
        on_question=says(answer) if answer else None,
    )


def test_a_lost_response_registers_once_and_a_person_decides(airflow: LocalAirflow) -> None:
    seen = []
    for on in ON:
        with EmbeddedAws(time_scale=0.003) as aws:
            answer: Answer = ("rejected", "worse on flats")
            report = registered(aws, on, airflow, answer, 0.8)
            assert (report.state, report.error, report.cause) == ("succeeded", None, None)
            [version] = versions(aws)
            account = {**aws.state(), "s3": {}}
            # The question's token is of Step Functions alone.
            calls = [call for call in report.calls if call.service == "sagemaker"]
            seen.append((normal.changes(calls), normal.account(account)))
        outputs: Any = report.outputs
        shown, decided = outputs["register"], outputs["decide"]
        assert shown["model_package"].endswith(":model-package/prices/1")
        assert (shown["version"], shown["status"]) == (1, "PendingManualApproval")
        assert decided["status"] == version["ModelApprovalStatus"] == "Rejected"
        assert version["ApprovalDescription"] == "worse on flats"
        metadata = version["CustomerMetadataProperties"]
        assert metadata["accuracy"] == "0.8"
        lineage = ("code_digest", "data_fingerprint", "training_job", "pipeline", "stage")
        assert [metadata[f"orchestration:{each}"] for each in lineage] == [
            *("c0de", "da7a", "prices-train", "prices", "register"),
        ]
        assert version["MetadataProperties"] == {"GeneratedBy": "prices-train"}
        quality = version["ModelMetrics"]["ModelQuality"]["Statistics"]
        assert quality["S3Uri"] == "s3://registry/report.json"
    assert seen[1:] == seen[:1] * 2


@pytest.mark.parametrize(
    ("accuracy", "status"), [(0.95, "Approved"), (0.85, "PendingManualApproval")]
)
def test_a_rule_approves_and_the_same_run_finds_its_version(accuracy: float, status: str) -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        registered(aws, "direct", None, None, accuracy)
        [version] = versions(aws)
        assert version["ModelApprovalStatus"] == status
        s3 = aws.client("s3")
        # What the driver has kept of the run is lost.
        for item in s3.list_objects_v2(Bucket="registry", Prefix="runs/")["Contents"]:
            s3.delete_object(Bucket="registry", Key=item["Key"])
        again = run(pipeline(), aws=aws, parameters={"accuracy": accuracy}, run_id="once")
        assert again.outputs["register"]["version"] == 1  # type: ignore[index,call-overload]
        assert "CreateModelPackage" not in {call.operation for call in again.calls}
        s3.put_object(Bucket="registry", Key="model/weights", Body=b"2")
        other = run(pipeline(), aws=aws, parameters={"accuracy": accuracy}, run_id="once more")
        assert other.outputs["register"]["version"] == 2  # type: ignore[index,call-overload]


def test_without_a_model_nothing_is_registered() -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        aws.client("s3").create_bucket(Bucket="registry")
        for on in ON[:2]:
            report = run(pipeline(), on=on, aws=aws, parameters={"accuracy": 1})
            assert (report.state, report.error) == ("failed", "DataNotUsable")
            assert report.cause == "stage register found no model below s3://registry/model"
        assert versions(aws) == []


MADE = {"CreateModel", "CreateEndpointConfig", "CreateEndpoint"}
DEPLOY: dict[str, Any] = {
    "kind": "deployment",
    "package_group": "prices",
    "endpoint_name": "prices",
    "instance_type": "ml.m5.large",
    "smoke_test": {"request": {"rooms": 3, "square_metres": 70}},
}


def deployment(**fields: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "serve",
            "region": "us-east-1",
            "workspace": "s3://registry/runs",
            "stages": {"deploy": {**DEPLOY, **fields}},
        }
    )


def approved(aws: EmbeddedAws, account: str | None = None) -> str:
    """Register and approve a version."""
    source = {"S3Uri": "s3://registry/model/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    container = {"Image": IMAGE, "ModelDataSource": {"S3DataSource": source}}
    made = aws.client("sagemaker", account=account).create_model_package(
        ModelPackageGroupName="prices",
        ModelApprovalStatus="Approved",
        InferenceSpecification={"Containers": [container]},
    )
    return str(made["ModelPackageArn"])


def test_the_latest_approved_version_is_deployed_and_left_alone_until_there_is_another(
    airflow: LocalAirflow,
) -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket="registry")
        for on in ON:
            report = run(deployment(), on=on, aws=aws, airflow=airflow)
            assert (report.state, report.error) == ("failed", "NoApprovedModel")
            assert report.cause == "stage deploy: no version is approved in the model group prices"
        for path in ("weights.json", "code/inference.py"):
            s3.put_object(Bucket="registry", Key=f"model/{path}", Body=(MODEL / path).read_bytes())
        aws.client("sagemaker").create_model_package_group(ModelPackageGroupName="prices")
        first = approved(aws)
        assert deployed(aws, "direct") == (first, MADE)
        assert deployed(aws, "step-functions") == (first, set())
        second = approved(aws)
        assert deployed(aws, "step-functions")[0] == second
        assert deployed(aws, "airflow", airflow) == (second, set())
        third = approved(aws)
        assert deployed(aws, "airflow", airflow)[0] == third


def deployed(aws: EmbeddedAws, on: On, airflow: LocalAirflow | None = None) -> tuple[str, set[str]]:
    """Deploy; return the version that serves, and the operations that have made something."""
    report = run(deployment(), on=on, aws=aws, airflow=airflow)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs["deploy"]["answer"] == {"price": 264000}
    sagemaker = aws.client("sagemaker")
    config = sagemaker.describe_endpoint(EndpointName="prices")["EndpointConfigName"]
    model = sagemaker.describe_endpoint_config(EndpointConfigName=config)
    name = model["ProductionVariants"][0]["ModelName"]
    version = sagemaker.describe_model(ModelName=name)["PrimaryContainer"]["ModelPackageName"]
    assert version == outputs["deploy"]["model_package"]
    made = {c.operation for c in report.calls if c.error_code is None}
    return version, made & MADE


OWNER = "444455556666"
GROUP = f"arn:aws:sagemaker:us-east-1:{OWNER}:model-package-group/prices"


def shared() -> str:
    """Return the policy that `orchestrate deploy` tells the owner of the group to set."""
    role = {"kind": "deployment", "package_group": GROUP, "instance_type": "ml.m5.large"}
    pipeline = Pipeline.parse(
        {
            "name": "serve",
            "region": "us-east-1",
            "workspace": "s3://registry/runs",
            "role": "arn:aws:iam::123456789012:role/SageMaker",
            "stages": {"deploy": role},
        }
    )
    [told] = warnings(desired(pipeline, Account(id="123456789012", region="us-east-1")))
    return told[told.index("{") :]


def test_a_version_of_another_account_is_deployed_where_its_policy_allows_it(
    airflow: LocalAirflow,
) -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        aws.client("s3").create_bucket(Bucket="registry")
        for path in ("weights.json", "code/inference.py"):
            body = (MODEL / path).read_bytes()
            aws.client("s3").put_object(Bucket="registry", Key=f"model/{path}", Body=body)
        theirs = aws.client("sagemaker", account=OWNER)
        for client in (theirs, aws.client("sagemaker")):
            client.create_model_package_group(ModelPackageGroupName="prices")
        version, own = approved(aws, OWNER), approved(aws)
        assert (version.split(":")[4], own.split(":")[4]) == (OWNER, "123456789012")
        for on in ON:
            # One endpoint, which the first makes: CreateModel is tried on each below.
            pipeline = deployment(package_group=GROUP)
            theirs.delete_model_package_group_policy(ModelPackageGroupName="prices")
            refused = run(pipeline, on=on, aws=aws, airflow=airflow, run_id=f"{on}-refused")
            assert refused.state == "failed"
            assert "no resource-based policy allows the sagemaker:ListModelPackages action" in str(
                refused.cause
            )
            theirs.put_model_package_group_policy(
                ModelPackageGroupName="prices", ResourcePolicy=shared()
            )
            report = run(pipeline, on=on, aws=aws, airflow=airflow, run_id=f"{on}-allowed")
            assert (report.state, report.cause) == ("succeeded", None)
            outputs: Any = report.outputs
            assert outputs["deploy"]["model_package"] == version
            assert outputs["deploy"]["answer"] == {"price": 264000}


ROLE = f"arn:aws:iam::{OWNER}:role/registry"
NOT_AUTHORIZED = f"is not authorized to perform: sts:AssumeRole on resource: {ROLE}"


def by_role(on: str) -> Pipeline:
    """Register, approve and deploy by a role of the account that has the registry."""
    where = {"registry_role": ROLE}
    stages = {
        "register": {
            "kind": "model_registration",
            "package_group": GROUP,
            "model_data": "s3://registry/model",
            "image": IMAGE,
            **where,
        },
        "decide": {
            "kind": "model_approval",
            "model_package": {"ref": "register.model_package"},
            **where,
        },
        "deploy": {
            **DEPLOY,
            **where,
            "package_group": GROUP,
            "endpoint_name": f"prices-{on}",
            "after": ["decide"],
        },
    }
    return Pipeline.parse(
        {
            "name": "serve",
            "region": "us-east-1",
            "workspace": "s3://registry/runs",
            "role": "arn:aws:iam::123456789012:role/SageMaker",
            "stages": stages,
        }
    )


def policies_in(told: str) -> Iterator[dict[str, Any]]:
    """Yield the policies that `orchestrate deploy` tells an owner to set."""
    decoder = json.JSONDecoder()
    while "{" in told:
        policy, end = decoder.raw_decode(told := told[told.index("{") :])
        told = told[end:]
        yield policy


def test_a_role_of_another_account_registers_approves_and_finds_what_is_deployed(
    airflow: LocalAirflow,
) -> None:
    wanted = desired(by_role("any"), Account(id="123456789012", region="us-east-1"))
    sharing, trust, permissions = (p for told in warnings(wanted) for p in policies_in(told))
    closed = {**trust, "Statement": [{**each, "Effect": "Deny"} for each in trust["Statement"]]}
    with EmbeddedAws(time_scale=0.003) as aws:
        aws.client("s3").create_bucket(Bucket="registry")
        for path in ("weights.json", "code/inference.py"):
            body = (MODEL / path).read_bytes()
            aws.client("s3").put_object(Bucket="registry", Key=f"model/{path}", Body=body)
        theirs, iam = (aws.client(each, account=OWNER) for each in ("sagemaker", "iam"))
        theirs.create_model_package_group(ModelPackageGroupName="prices")
        theirs.put_model_package_group_policy(
            ModelPackageGroupName="prices", ResourcePolicy=json.dumps(sharing)
        )
        iam.create_role(RoleName="registry", AssumeRolePolicyDocument=json.dumps(closed))
        iam.put_role_policy(
            RoleName="registry", PolicyName="own", PolicyDocument=json.dumps(permissions)
        )

        def report(on: On, document: Any, name: str) -> RunReport:
            trusting = json.dumps(document)
            iam.update_assume_role_policy(RoleName="registry", PolicyDocument=trusting)
            return run(by_role(on), on=on, aws=aws, airflow=airflow, run_id=f"{on}-{name}")

        for on in ON:
            refused = report(on, closed, "refused")
            assert refused.state == "failed"
            assert f"User: arn:aws:iam::123456789012:root {NOT_AUTHORIZED}" in str(refused.cause)
            allowed = report(on, trust, "allowed")
            assert (allowed.state, allowed.cause) == ("succeeded", None)
            outputs: Any = allowed.outputs
            version = outputs["register"]["model_package"]
            assert version.startswith(f"arn:aws:sagemaker:us-east-1:{OWNER}:model-package/prices/")
            assert outputs["decide"]["status"] == "Approved"
            assert outputs["deploy"]["model_package"] == version
            assert outputs["deploy"]["answer"] == {"price": 264000}
        own = aws.client("sagemaker").list_model_package_groups()
        assert own["ModelPackageGroupSummaryList"] == []
