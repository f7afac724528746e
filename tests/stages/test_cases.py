"""Cases that a new model must answer: in the pipeline's file or one of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.graph import Call, all_steps
from orchestration.pipeline.files import other_files
from tests.stages.test_endpoint_updates import deployment, problems

PIPELINE = """
name: shop
workspace: s3://bucket/runs
stages:
  deploy:
    kind: deployment
    model_data: s3://models/one
    image: image:1
    instance_type: ml.m5.large
    update: {trial: {cases: CASES, after: true}}
"""


def load(folder: Path, cases: str = "cases.yaml") -> Pipeline:
    (folder / "shop.yaml").write_text(PIPELINE.replace("CASES", cases))
    return Pipeline.load(folder / "shop.yaml")


def bodies(pipeline: Pipeline) -> list[Any]:
    return [
        (step.name, step.operation.request["ContentType"], step.operation.request["Body"])
        for step in all_steps(pipeline.lower().graph)
        if isinstance(step, Call) and step.operation.name == "InvokeEndpoint"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- {request: 1}\n- {request: 'a,1', content_type: text/csv, status: 400}\n",
        '[{"request": 1}, {"request": "a,1", "content_type": "text/csv", "status": 400}]',
    ],
)
def test_cases_in_a_file_of_their_own_are_asked_before_and_after(tmp_path: Path, text: str) -> None:
    (tmp_path / "cases.yaml").write_text(text)
    asked = [("1", "application/json", 1), ("2", "text/csv", "a,1")]
    assert bodies(load(tmp_path)) == [
        (f"deploy.{when}_{number}", *content)
        for when in ("trial", "check")
        for number, *content in asked
    ]
    assert list(other_files(tmp_path / "shop.yaml", {"sources": {}})) == ["cases.yaml"]


def test_cases_of_a_nested_pipeline_lie_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "cases.yaml").write_text("[{request: 5}]")
    load(tmp_path / "inner")
    outer = (
        "name: outer\nworkspace: s3://b/r\nstages:\n  in: {kind: pipeline, file: inner/shop.yaml}"
    )
    (tmp_path / "outer.yaml").write_text(outer)
    names = [name for name, *_ in bodies(Pipeline.load(tmp_path / "outer.yaml"))]
    assert names == ["in_deploy.trial_1", "in_deploy.check_1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cases: cases.yaml: can't be read: No such file or directory"),
        ("- {request: 1", "cases: cases.yaml: line 1, column 14: expected ',' or '}'"),
        ("cases: []", "cases: cases.yaml: expected a list of cases"),
        ("- {request: 1}\n- {body: 1}", "cases[1].request: is required"),
        ("- {request: 1, status: 302}", "cases[0].status: expected 200, or 400 to 599, got 302"),
    ],
)
def test_cases_that_do_not_parse_are_errors_with_their_places(
    tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "cases.yaml").write_text(text)
    with pytest.raises(PipelineError) as error:
        load(tmp_path)
    assert f"stages.deploy.update.trial.{message}" in str(error.value)


@pytest.mark.parametrize(
    ("case", "field", "message"),
    [
        (
            {"request": {"a": 1}, "content_type": "text/csv"},
            "request",
            "is JSON, and content_type is text/csv; give text",
        ),
        (
            {"request": 1, "status": 400, "expected": {"a": 1}},
            "expected",
            "SageMaker hands on no fields of a refusal; remove it",
        ),
        (
            {"request": 1, "expected": {"a[*].b": 1}},
            "expected",
            "'a[*].b': * and [] give a list, and one value is needed; name an element",
        ),
    ],
)
def test_cases_that_cannot_be_judged_are_errors(
    case: dict[str, Any], field: str, message: str
) -> None:
    assert problems(update={"trial": [case]})[f"update.trial.cases[0].{field}"] == message


@pytest.mark.parametrize(
    "place", ["a", "a.b[0].c-d", "[0]", "@", "@[1][2].a", "a[?b=='c'] | [0].d"]
)
def test_places_of_one_value_are_taken(place: str) -> None:
    assert problems(update={"trial": [{"request": 1, "expected": {place: 1}}]}) == {}


def test_a_file_is_named_by_a_file_alone() -> None:
    with pytest.raises(ValueError, match="only a pipeline in a file names a file of cases"):
        deployment(update={"trial": {"cases": "cases.yaml"}})
