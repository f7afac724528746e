"""``checkpoint_evaluation`` of predictions: its requests, permissions, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy.permissions import policies
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Graph, Guarded, Step, all_steps, bodies
from orchestration.local.account.stand_ins import StandIns
from orchestration.local.run.preparation import stand_ins
from orchestration.pricing import Assumptions, estimate
from orchestration.stages.stage import SAMPLE
from tests.stages.test_evaluation import (
    ACCOUNT,
    IMAGE,
    OF_CHECKPOINTS,
    OF_MODEL,
    OF_TUNING,
    ROLE,
    TUNE,
    beside,
    decided,
    lowered,
    pipeline,
    problems,
    step,
)

TRANSFORM: dict[str, Any] = {"image": IMAGE, "instance_type": "ml.m5.xlarge", "split": "line"}
ELEMENT = Values({}, {}, "0123456789ab", {"Prefix": "c/epoch-1/"})


def sent(workflow: Any, name: str) -> Any:
    return evaluate(step(workflow, name).operation.request, ELEMENT)


def test_each_model_predicts_under_a_name_of_its_own_and_its_predictions_are_scored() -> None:
    made = lowered(OF_CHECKPOINTS, checkpoints="s3://bucket/c", transform=TRANSFORM)
    model, job = sent(made, "each.create"), sent(made, "each.transform")
    place = model["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]
    assert (place["S3Uri"], place["CompressionType"]) == ("s3://bucket/c/epoch-1/", "None")
    assert (job["ModelName"], job["TransformInput"]["SplitType"]) == (model["ModelName"], "Line")
    assert job["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://bucket/holdout/"
    scoring = sent(made, "each.job")
    assert scoring["ProcessingJobName"] == job["TransformJobName"]
    inputs = {each["InputName"]: each["S3Input"]["S3Uri"] for each in scoring["ProcessingInputs"]}
    assert inputs["predictions"] == job["TransformOutput"]["S3OutputPath"]
    assert scoring["AppSpecification"]["ContainerArguments"][:2] == [
        *("--predictions", "/opt/ml/processing/input/predictions"),
    ]
    assert sent(made, "each.delete") == {"ModelName": model["ModelName"]}


def test_code_lies_beside_each_model_and_is_uploaded_with_the_pipeline() -> None:
    code = {"directory": "serve", "entry_point": "inference.py", "sha256": "ab" * 32}
    made = lowered(
        OF_CHECKPOINTS, checkpoints="s3://bucket/c", transform={**TRANSFORM, "source": code}
    )
    container = sent(made, "each.create")["PrimaryContainer"]
    [beside_it] = container["AdditionalModelDataSources"]
    assert beside_it["S3DataSource"]["S3Uri"].endswith(f"/source/{'ab' * 32}/files/")
    assert container["Environment"]["SAGEMAKER_PROGRAM"] == "inference.py"
    stage = pipeline(OF_CHECKPOINTS, transform={**TRANSFORM, "source": code}).stages[-1]
    assert "transform.source" in dict(stage.sources())


def test_code_of_a_transform_is_found_beside_the_pipeline_s_file(tmp_path: Path) -> None:
    (tmp_path / "serve").mkdir()
    (tmp_path / "serve" / "inference.py").write_text("pass")
    transform = {**TRANSFORM, "source": {"directory": "serve", "entry_point": "inference.py"}}
    judged = {"metric": "accuracy", "direction": "max", "transform": transform}
    stage = {"kind": "checkpoint_evaluation", **OF_MODEL, "model": "s3://bucket/model", **judged}
    given = {"name": "p", "workspace": "s3://bucket/runs", "role": ROLE, "stages": {"e": stage}}
    path = tmp_path / "pipeline.yaml"
    path.write_text(json.dumps(given))
    found = dict(Pipeline.load(path).stages[0].sources())["transform.source"]
    assert (found.directory, found.sha256 is None) == (str(tmp_path / "serve"), False)


def test_code_that_the_container_would_not_find_is_refused() -> None:
    code = {"uri": "s3://bucket/code.tar.gz", "entry_point": "deep/inference.py"}
    found = problems(OF_MODEL, transform={**TRANSFORM, "source": code})
    assert [line for line in found if "transform.source: is an archive" in line]
    assert [line for line in found if "transform.source.entry_point: expected a module" in line]


def guarded(graph: Graph) -> Iterator[Step]:
    """Yield the steps whose failure something is cleaned up after."""
    for each in graph.steps:
        if isinstance(each, Guarded):
            yield from all_steps(each.body)
        else:
            for body in bodies(each):
                yield from guarded(body)


@pytest.mark.parametrize("fields", [{}, {"report": {}}])
@pytest.mark.parametrize("subject", [OF_CHECKPOINTS, OF_MODEL, OF_TUNING])
def test_a_model_is_deleted_whatever_becomes_of_its_jobs(
    subject: dict[str, Any], fields: dict[str, Any]
) -> None:
    transform = {**TRANSFORM, "model_archive": subject is not OF_CHECKPOINTS}
    made = lowered(subject, transform=transform, **fields)
    waited = [each for each in guarded(made.graph) if isinstance(each, Call) and each.until]
    jobs = [each for each in waited if each.name.startswith("evaluate.")]
    assert [each.operation.name for each in jobs] == ["CreateTransformJob", "CreateProcessingJob"]
    assert [each.may_fail for each in jobs] == [bool(fields)] * 2


@pytest.mark.parametrize("again", [{"retry": {"attempts": 2}}, {"wait_for_capacity_h": 1}])
def test_what_is_scored_follows_from_the_job_that_was_followed_whichever_try_it_was(
    again: dict[str, Any],
) -> None:
    made = lowered(OF_CHECKPOINTS, transform=TRANSFORM, failures_allowed=1, **again)
    asked = {
        each.operation.name
        for each in all_steps(made.graph)
        if isinstance(each, Call) and each.name.startswith("evaluate.each.")
    }
    assert "DescribeTransformJob" not in asked, "it'd be the first try, by its name"
    condition = step(made, "each.scored").condition
    for status, well in (("Completed", True), ("", False)):
        assert (
            evaluate(condition, Values({"evaluate.each.transform": {"status": status}}, {}, ""))
            is well
        )


def test_the_model_that_serves_predicts_itself_and_a_version_by_a_model_of_its_own() -> None:
    served, version = (
        lowered(OF_MODEL, transform={**TRANSFORM, "model_archive": True}, champion=champion)
        for champion in ({"endpoint": "live"}, {"package_group": "g"})
    )
    known = {"evaluate.champion.config": {"model": "m"}, "evaluate.champion.look": {"found": "v"}}
    values = Values(known, {}, "0123456789ab")
    jobs: list[Any] = [
        evaluate(step(each, "champion.transform").operation.request, values)
        for each in (served, version)
    ]
    created: Any = evaluate(step(version, "champion.create").operation.request, values)
    assert jobs[0]["ModelName"] == "m"
    assert created["PrimaryContainer"] == {"ModelPackageName": "v"}
    assert jobs[1]["ModelName"] == created["ModelName"] != "p-evaluate-0123456789ab"


def test_a_component_without_a_model_cannot_predict_in_a_batch_transform() -> None:
    champion = {"endpoint": "live", "inference_component": "cats"}
    made = lowered(OF_CHECKPOINTS, transform=TRANSFORM, champion=champion)
    required = step(made, "champion.predicts")
    for model, well in (("m", True), ("", False)):
        values = Values({"evaluate.champion.look": {"model": model}}, {}, "0123456789ab")
        assert evaluate(required.condition, values) is well
    assert required.error == "ChampionNotEvaluated"
    files = {"found": "cats", "endpoint": "live", "model": "", "files": "s3://b/adapter.tar.gz"}
    known = Values({"evaluate.champion.look": files}, {}, "0123456789ab")
    chosen = step(made, "champion.component")
    assert evaluate(chosen.condition, known) is False
    places: Any = evaluate(chosen.absent, known)
    assert {*places.values()} == {None, "s3://b/adapter.tar.gz"}


def test_permissions_and_costs_follow_from_the_calls() -> None:
    made = lowered(OF_CHECKPOINTS, transform=TRANSFORM, champion={"endpoint": "live"})
    actions = str(policies.policy(made, ACCOUNT, [{}]))
    for name in ("CreateModel", "DeleteModel", "CreateTransformJob", "StopTransformJob"):
        assert f"sagemaker:{name}" in actions
    lines = [
        each.what
        for each in estimate(made, Assumptions(), region="us-east-1", parameters={}).lines
        if each.stage == "evaluate"
    ]
    assert "1 x ml.m5.xlarge" in lines


def test_another_account_s_group_allows_a_model_of_its_version() -> None:
    group = "arn:aws:sagemaker:us-east-1:210987654321:model-package-group/g"
    champion = {"package_group": group}
    transform = {**TRANSFORM, "model_archive": True}
    stages = {
        each.name: each
        for each in pipeline(OF_MODEL, transform=transform, champion=champion).stages
    }
    [needed] = stages["evaluate"].lower(SAMPLE).permissions
    assert "sagemaker:CreateModel" in needed.actions


def test_programs_of_this_machine_predict_and_score() -> None:
    transform = {**TRANSFORM, "local": {"command": ["serve"]}}
    account = StandIns()
    account.provide(
        stand_ins(pipeline(OF_CHECKPOINTS, transform=transform, local={"command": ["score"]}))
    )
    tags = [
        {"Key": f"orchestration:{key}", "Value": value}
        for key, value in {"pipeline": "p", "stage": "evaluate"}.items()
    ]
    model = account.of({"Tags": tags, "PrimaryContainer": {}})
    job = account.of({"Tags": tags})
    assert model is not None
    assert job is not None
    assert (model.command, job.command) == (("serve",), ("score",))


@pytest.mark.parametrize(
    ("subject", "transform", "expected"),
    [
        (OF_CHECKPOINTS, {"image": None}, "transform.image: is needed by the models that predict"),
        (OF_CHECKPOINTS, {"framework": {"name": "pytorch"}}, "transform.framework: there is an"),
        (
            OF_CHECKPOINTS,
            {"split": "none", "strategy": "single_record"},
            "transform.strategy: needs records; give split",
        ),
        (OF_CHECKPOINTS, {"input_filter": "$["}, "transform.input_filter: expected a JSONPath"),
        (
            OF_CHECKPOINTS,
            {"extra_request": {"CreateTransformJob": {"BatchStrategy": "x", "ModelName": "y"}}},
            "transform.extra_request: extra_request.CreateTransformJob.ModelName is already set",
        ),
        (
            OF_CHECKPOINTS,
            {"model_archive": True},
            "transform.model_archive: checkpoints are directories; remove it",
        ),
        (
            OF_MODEL,
            {},
            "transform.model_archive: each model is a model.tar.gz; give model_archive: true",
        ),
    ],
)
def test_what_keeps_models_from_predicting_is_refused(
    subject: dict[str, Any], transform: dict[str, Any], expected: str
) -> None:
    given = {k: v for k, v in {**TRANSFORM, **transform}.items() if v is not None}
    found = problems(subject, transform=given)
    assert [each for each in found if f"stages.evaluate.{expected}" in each], found


def test_a_search_s_folders_predict_where_it_is_said() -> None:
    plain = {**TUNE, "output": {"compression": "NONE"}}
    search = {**OF_TUNING, "tuning_job": {"ref": "train.tuning_job_name"}}
    judged = decided("accuracy", **search, transform={**TRANSFORM, "model_archive": False})
    made = beside(plain, evaluate=judged).lower()
    item = Values({}, {}, "0123456789ab", {"training_job": "t", "model": "s3://b/m"})
    request: Any = evaluate(step(made, "each.create").operation.request, item)
    place = request["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]
    assert (place["S3Uri"], place["S3DataType"]) == ("s3://b/m/", "S3Prefix")
