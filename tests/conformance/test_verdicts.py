"""An evaluation that a job decides ends alike on every driver: failures, slices, champions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, Source
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import executions, run
from tests.conformance.sites import wait
from tests.conformance.test_evaluations import IMAGE, following, judged
from tests.conformance.test_processing_jobs import BY_STEPS, everywhere

pytestmark = pytest.mark.slow

BUCKET = "verdicts"
SOURCE = Path(__file__).with_name("src_evaluation")
CHECKPOINTS: dict[str, dict[str, Any]] = {
    # The best fails, and the next has a slice that is too small.
    "mixed": {"0": None, "1": (0.95, 0.7), "2": (0.9, 0.85)},
    "old": {"0": (0.85, 0.85)},
    "broken": {"0": None},
}


def examples(accuracy: float) -> bytes:
    """Return scores of a hundred examples with that mean."""
    rows = [{"id": n, "accuracy": int(n < accuracy * 100)} for n in range(100)]
    return "\n".join(map(json.dumps, rows)).encode()


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="holdout/data", Body=b"x")
        for name, epochs in CHECKPOINTS.items():
            for epoch, measured in epochs.items():
                folder = f"{name}/epoch-{epoch}"
                if measured is None:
                    s3.put_object(Bucket=BUCKET, Key=f"{folder}/broken", Body=b"")
                    continue
                report = {
                    "metrics": {"accuracy": measured[0]},
                    "slices": {"language": {"de": measured[1], "fr": 0.9}},
                }
                key = f"{folder}/evaluation.json"
                s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(report).encode())
                key = f"{folder}/examples.jsonl"
                s3.put_object(Bucket=BUCKET, Key=key, Body=examples(measured[0]))
        _serve(embedded)
        yield embedded


def _serve(aws: EmbeddedAws) -> None:
    """Create endpoints of an old model, of its version in a registry, and of one that is gone."""
    sagemaker = aws.client("sagemaker")
    for name, folder in {"live": "old", "lost": "old", "spoilt": "broken"}.items():
        _endpoint(aws, name, _container(folder))
    sagemaker.delete_model(ModelName="lost")
    sagemaker.create_model_package_group(ModelPackageGroupName="digits")
    for folder, status in {"old": "Approved", "mixed": "PendingManualApproval"}.items():
        sagemaker.create_model_package(
            ModelPackageGroupName="digits",
            ModelApprovalStatus=status,
            InferenceSpecification={
                "Containers": [_container(folder)],
                "SupportedContentTypes": ["text/csv"],
                "SupportedResponseMIMETypes": ["text/csv"],
            },
        )
    listed = sagemaker.list_model_packages(ModelPackageGroupName="digits")
    version = listed["ModelPackageSummaryList"][0]["ModelPackageArn"]
    _endpoint(aws, "registered", {"ModelPackageName": version})
    _share(aws, "cats")


def _container(folder: str) -> dict[str, Any]:
    place = {
        "S3Uri": f"s3://{BUCKET}/{folder}/epoch-0/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
    }
    return {"Image": IMAGE, "ModelDataSource": {"S3DataSource": place}}


def _endpoint(aws: EmbeddedAws, name: str, container: dict[str, Any]) -> None:
    sagemaker = aws.client("sagemaker")
    role = executions.role(aws, "Serving", "sagemaker.amazonaws.com")
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer=container)
    variant = {
        "VariantName": "main",
        "ModelName": name,
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def _share(aws: EmbeddedAws, component: str) -> None:
    """Create an endpoint without a model of its own, and serve the old model on it."""
    sagemaker = aws.client("sagemaker")
    role = executions.role(aws, "Serving", "sagemaker.amazonaws.com")
    variant = {"VariantName": "main", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(
        EndpointConfigName="shared", ProductionVariants=[variant], ExecutionRoleArn=role
    )
    sagemaker.create_endpoint(EndpointName="shared", EndpointConfigName="shared")
    asked = sagemaker.describe_endpoint
    wait(lambda: asked(EndpointName="shared")["EndpointStatus"] == "InService")
    sagemaker.create_inference_component(
        InferenceComponentName=component,
        EndpointName="shared",
        VariantName="main",
        Specification={
            "ModelName": "live",
            "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 512},
        },
        RuntimeConfig={"CopyCount": 1},
    )


def decided(name: str = "mixed", **fields: Any) -> Any:
    chosen: dict[str, Any] = {
        "checkpoints": f"s3://{BUCKET}/{name}",
        "checkpoint_prefix": "epoch-",
        "data": f"s3://{BUCKET}/holdout",
        "source": Source.at(SOURCE, "evaluate_all.py"),
        "metrics": {},
        "failures_allowed": 1,
    }
    return judged(**{**chosen, **fields})


def made(name: str, *stages: Any) -> Pipeline:
    return Pipeline(name=name, region="us-east-1", workspace=f"s3://{BUCKET}/runs", stages=stages)


def ended(reports: Any) -> Any:
    """Return what the runs show of the evaluation, equal but for the place of the page."""
    shown = [dict(report.outputs["judge"]) for report in reports.values()]
    for each in shown:
        bucket, _, key = each.pop("report").removeprefix("s3://").partition("/")
        assert key.endswith("/judge/verdict/report.html")
        console, _, prefix = each.pop("report_link").partition("prefix=")
        assert console.startswith(f"https://console.aws.amazon.com/s3/object/{bucket}?")
        assert prefix == key
    assert shown[1:] == shown[:1] * (len(shown) - 1)
    return shown[0]


def jobs(aws: EmbeddedAws) -> int:
    return len(aws.state()["sagemaker"]["ProcessingJobs"])


def test_a_failed_evaluation_loses_and_a_champion_is_beaten(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    champion = {"endpoint": "live", "margin": 0.005}
    evaluate = decided(slices={"language": {"minimum": 0.8}}, champion=champion)
    pipeline = made("beaten", evaluate, following(evaluate.outputs.best_checkpoint))
    reports = everywhere(pipeline, aws, airflow)
    assert {each.state for each in reports.values()} == {"succeeded"}
    shown = ended(reports)
    low, high = shown.pop("interval_low"), shown.pop("interval_high")
    assert 0.005 < low < 0.05 < high
    assert shown.pop("improvement") == pytest.approx(0.05)
    assert shown.pop("explanation").startswith("accuracy of epoch-2 is better than the champion's")
    assert shown == {
        "best_checkpoint": f"s3://{BUCKET}/mixed/epoch-2/",
        "best_metric": 0.9,
        "passed": True,
        "outcome": "promoted",
        "champion": f"s3://{BUCKET}/old/epoch-0/",
        "champion_metric": 0.85,
    }
    every: Any = reports["direct"].outputs
    uri = every["judge"]["report"]
    key = uri.removeprefix(f"s3://{BUCKET}/").replace(".html", ".json")
    body = aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
    problems = [each.get("problem") for each in json.loads(body)["evaluations"]]
    assert problems == ["it wrote no evaluation.json", None, None]
    paid = jobs(aws)
    again = run(pipeline, aws=aws, run_id="beaten-direct")
    assert (again.state, jobs(aws)) == ("succeeded", paid)


def test_stages_branch_on_the_outcome(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    served = {"endpoint": "shared", "inference_component": "cats"}
    champion = {**served, "margin": 0.2, "on_kept": "go_on"}
    evaluate = decided(champion=champion)
    best, outcome = evaluate.outputs.best_checkpoint, evaluate.outputs.outcome
    deployed = following(best, when={"equal": [outcome, "promoted"]})
    told = following(best, name="tell", when={"equal": [outcome, "champion_kept"]})
    before = jobs(aws)
    reports = everywhere(made("kept", evaluate, deployed, told), aws, airflow)
    assert {each.state for each in reports.values()} == {"succeeded"}
    shown = ended(reports)
    assert (shown["outcome"], shown["passed"]) == ("champion_kept", False)
    assert shown["champion"] == f"s3://{BUCKET}/old/epoch-0/"
    every: list[Any] = [each.outputs for each in reports.values()]
    assert {each["use"]["job_name"] for each in every} == {None}
    # Three checkpoints, the champion, the decision, and what follows a champion that is kept.
    assert jobs(aws) - before == 3 * 6


@pytest.mark.parametrize(
    ("name", "fields", "outcome"),
    [
        ("old", {"threshold": {"value": 0.9, "on_miss": "go_on"}}, "below_threshold"),
        ("nobody", {"on_miss": "go_on"}, "no_checkpoint"),
    ],
)
def test_stages_branch_on_a_miss(
    name: str, fields: Any, outcome: str, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    evaluate = decided(name, **fields)
    best, told = evaluate.outputs.best_checkpoint, evaluate.outputs.outcome
    deployed = following(best, when={"equal": [told, "promoted"]})
    data = f"s3://{BUCKET}/holdout"
    tell = following(data, name="tell", when={"equal": [told, outcome]})
    pipeline = made(f"missed-{outcome.replace('_', '-')}", evaluate, deployed, tell)
    reports = everywhere(pipeline, aws, airflow)
    assert {each.state for each in reports.values()} == {"succeeded"}
    shown = ended(reports)
    assert (shown["outcome"], shown["passed"]) == (outcome, False)
    for each in reports.values():
        every: Any = each.outputs
        assert every["use"]["job_name"] is None
        assert every["tell"]["job_name"]


def test_the_first_run_has_no_champion(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    select = {"pattern": "epoch-*", "every": 2, "last": 1}
    evaluate = decided(champion={"endpoint": "nobody"}, select=select)
    shown = ended(everywhere(made("first", evaluate), aws, airflow, backends=BY_STEPS))
    assert (shown["outcome"], shown["champion"]) == ("promoted", None)
    assert shown["explanation"].endswith("there is no champion yet")
    assert shown["best_checkpoint"] == f"s3://{BUCKET}/mixed/epoch-2/"


@pytest.mark.parametrize(
    ("name", "fields", "error", "cause"),
    [
        (
            *("mixed", {"failures_allowed": 0}, "EvaluationsFailed"),
            "1 of 3 evaluations failed, 0 may fail; the first is epoch-0: it wrote no",
        ),
        (
            *("mixed", {"slices": {"language": {"minimum": 0.95}}}, "ConstraintNotMet"),
            "none of 2 keeps all bounds; of epoch-1 language de is 0.7",
        ),
        ("old", {"champion": {"endpoint": "lost"}}, "ChampionNotEvaluated", "deploy or approve"),
        (
            *("old", {"champion": {"endpoint": "spoilt"}}, "ChampionNotEvaluated"),
            f"the champion s3://{BUCKET}/broken/epoch-0/: it wrote no evaluation.json",
        ),
        (
            *("old", {"champion": {"endpoint": "shared"}}, "ChampionNotEvaluated"),
            "stage judge: the endpoint shared has no model of its own; name one of its inference "
            "components: champion: {endpoint: shared, inference_component: NAME}",
        ),
        (
            "old",
            {"champion": {"endpoint": "live", "inference_component": "cats"}},
            "ChampionNotEvaluated",
            "stage judge: the inference component cats is on the endpoint shared, not on live",
        ),
    ],
)
def test_what_cannot_be_promoted_fails_the_run_by_its_own_name(
    name: str,
    fields: Any,
    error: str,
    cause: str,
    aws: EmbeddedAws,
    airflow: LocalAirflow,
) -> None:
    pipeline = made(f"fails-{error.lower()}-{len(cause)}", decided(name, **fields))
    reports = everywhere(pipeline, aws, airflow)
    assert {(each.state, each.error) for each in reports.values()} == {("failed", error)}
    for each in reports.values():
        assert cause in str(each.cause)
        if "DescribeModel" in str(each.cause) or "inference component" in cause:
            continue  # Nothing was decided, and so there is no page.
        page = str(each.cause).rpartition("the page about it is ")[2]
        place = re.fullmatch(rf"s3://{BUCKET}/(.+/judge/verdict/report\.html)", page)
        assert place is not None, each.cause
        assert aws.client("s3").head_object(Bucket=BUCKET, Key=place[1])["ContentLength"] > 0


def test_where_a_miss_ends_the_run_well_nothing_is_chosen(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    evaluate = decided("nobody", on_miss="stop")
    pipeline = made("nothing", evaluate, following(evaluate.outputs.best_checkpoint))
    # The job that decides is created, and the response is lost: the second request finds it.
    lost = Fault(
        "sagemaker", "CreateProcessingJob", "InternalFailure", "lost", status=500, after_effect=True
    )
    reports = everywhere(pipeline, aws, airflow, lost)
    assert {each.state for each in reports.values()} == {"succeeded"}
    shown = ended(reports)
    assert (shown["outcome"], shown["best_checkpoint"]) == ("no_checkpoint", None)


def test_one_model_against_a_champion_by_a_container_without_a_script(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    model = f"s3://{BUCKET}/mixed/epoch-2/"
    fields: dict[str, Any] = {
        "checkpoints": None,
        "checkpoint_prefix": "",
        "failures_allowed": None,
        "source": None,
        "command": ["/opt/program/evaluate", "--strict"],
        "local": {"command": ["python3", "evaluate_all.py"], "directory": str(SOURCE)},
    }
    evaluate = decided(
        **fields, model=model, champion={"endpoint": "registered", "confidence": 0.6}
    )
    reports = everywhere(made("one", evaluate), aws, airflow)
    shown = ended(reports)
    assert (shown["outcome"], shown["model"]) == ("promoted", model)
    for each in reports.values():
        sent: list[Any] = [
            call.request for call in each.calls if call.operation == "CreateProcessingJob"
        ]
        programs = [job["AppSpecification"]["ContainerEntrypoint"] for job in sent]
        assert sorted(programs)[:2] == [["/opt/program/evaluate", "--strict"]] * 2
        # Its own code is the decision's alone, whose program has no stand-in.
        assert [
            "code" in [given["InputName"] for given in job["ProcessingInputs"]] for job in sent
        ] == [program[0] == "python3" for program in programs]
