"""A pipeline as data: there and back, frozen, lowered alike each time."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestration import Pipeline, PipelineError, TrainingJob, join, parameter
from tests.pipeline.building import (
    deployment,
    evaluation,
    job,
    lustre,
    pipeline,
    reader,
    stages_in,
)

DAGS = Path(__file__).parents[2] / "dags"
# AWS takes no line ends in a hyperparameter, and nothing takes NUL.
TEXT = st.text(max_size=12).filter(lambda text: not set(text) & set("\0\n\r\x85\u2028\u2029"))
VALUES = st.one_of(
    TEXT,
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([{"parameter": "bucket"}, {"run": "id"}, {"join": ["a", {"run": "id"}]}]),
)
KEYS = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True).filter(
    lambda key: not key.startswith("sagemaker_")
)


def back(given: Pipeline) -> Pipeline:
    return Pipeline.parse(given.model_dump(mode="json"))


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.dictionaries(KEYS, VALUES.filter(lambda v: isinstance(v, str | dict)), max_size=3),
    st.sampled_from([None, "b", {"parameter": "bucket"}]),
)
def test_plain_data_and_back_gives_an_equal_pipeline(
    hyperparameters: dict[str, Any], environment: dict[str, Any], key: Any
) -> None:
    train = job(
        "train",
        hyperparameters=hyperparameters,
        environment={f"E{n}": value for n, value in enumerate(environment.values())},
        extra_request={} if key is None else {"OutputDataConfig": {"KmsKeyId": key}},
    )
    made = pipeline(train, parameters={"bucket": {}})
    assert back(made) == made
    assert back(made).lower() == made.lower()


@pytest.mark.parametrize("name", ["digits", "llm_fsx"])
def test_the_examples_are_equal_after_a_round_trip(name: str) -> None:
    made = Pipeline.load(DAGS / f"{name}.yaml")
    assert back(made) == made
    assert Pipeline.parse(made.model_dump()) == made


def every_stage() -> Pipeline:
    stages = [lustre("fs"), reader("train", "fs"), evaluation("evaluate", "train")]
    return pipeline(*stages, deployment("deploy", "evaluate"))


def test_equal_pipelines_are_lowered_to_equal_workflows() -> None:
    stages = [job("train"), evaluation("evaluate", "train"), deployment("deploy", "evaluate")]
    assert pipeline(*stages).lower() == pipeline(*stages).lower()


def test_a_pipeline_is_lowered_once() -> None:
    once = pipeline(job("train"))
    assert once.lower() is once.lower()


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)), lambda p: p.model_copy()],
    ids=["copy", "deepcopy", "pickle", "model_copy"],
)
def test_a_copy_is_equal_and_lowered_alike(copied: Callable[[Pipeline], Pipeline]) -> None:
    original = pipeline(job("train"))
    assert copied(original) == original
    assert copied(original).lower() == original.lower()


def test_a_copy_with_another_field_is_lowered_by_that_field() -> None:
    renamed = pipeline(job("train")).model_copy(update={"name": "renamed"})
    assert renamed.lower().name == "renamed"


def test_a_workflow_survives_pickling() -> None:
    workflow = every_stage().lower()
    assert pickle.loads(pickle.dumps(workflow)) == workflow


def test_stages_by_name_and_stages_in_a_list_are_the_same() -> None:
    listed = [job("a"), job("b", after=["a"])]
    by_name = {stage["name"]: {k: v for k, v in stage.items() if k != "name"} for stage in listed}
    assert pipeline(stages=by_name) == pipeline(*listed)


def test_stages_built_in_python_are_those_of_a_file() -> None:
    built = TrainingJob.model_validate(job("train"))
    assert pipeline(stages=[built]) == pipeline(job("train"))
    assert stages_in(pipeline(stages={"train": built}).lower().graph) == {"train"}


def test_nothing_can_be_assigned() -> None:
    made = every_stage()
    for model in (made, made.stages[0], made.stages[1]):
        with pytest.raises(ValidationError, match="frozen"):
            model.name = "other"  # type: ignore[misc]  # what is tested


def test_outputs_refer_to_the_stage() -> None:
    train = TrainingJob.model_validate(job("train"))
    assert repr(train.outputs.checkpoints) == "<reference to train.checkpoints>"


def test_the_role_is_a_parameter_unless_it_is_given() -> None:
    data = {"name": "p", "workspace": "s3://b/p", "stages": [job("a")]}
    assert [spec.name for spec in Pipeline.parse(data).lower().parameters] == ["role"]
    assert pipeline(job("a")).lower().parameters == ()


TELL = {
    "name": "tell",
    "kind": "aws_call",
    "service": "sns",
    "operation": "Publish",
    "request": {"TopicArn": "arn:aws:sns:us-east-1:111122223333:t", "Message": "m"},
}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, []),
        ({"parameters": {"role": {}}}, ["role"]),
        ({"stages": [{**TELL, "request": {"Message": {"parameter": "role"}}}]}, ["role"]),
        ({"stages": [TELL, job("a")]}, ["role"]),
        (
            {
                "on_failure": [
                    {**TELL, "name": "after", "request": {"Message": {"parameter": "role"}}}
                ]
            },
            ["role"],
        ),
        ({"role": {"parameter": "mine"}, "parameters": {"mine": {}}}, ["mine"]),
    ],
)
def test_runs_must_give_a_role_if_a_stage_uses_it(fields: dict[str, Any], names: list[str]) -> None:
    made = Pipeline.parse({"name": "p", "workspace": "s3://b/p", "stages": [TELL], **fields})
    assert [spec.name for spec in made.parameter_specs() if spec.default is None] == names


def test_references_stand_anywhere_in_extra_request() -> None:
    written = {"OutputDataConfig": {"KmsKeyId": {"parameter": "key"}}}
    built = {"OutputDataConfig": {"KmsKeyId": parameter("key")}}
    one, other = (
        pipeline(job("a", extra_request=extra), parameters={"key": {}})
        for extra in (written, built)
    )
    assert one == other


def test_a_known_output_can_be_part_of_a_text() -> None:
    told = {"join": ["passed: ", {"ref": "evaluate.passed"}]}
    stages = [job("t"), evaluation("evaluate", "t", None)]
    made = pipeline(*stages, job("u", environment={"TOLD": told}))
    assert join("passed: true") in _values(made.lower())


def _values(workflow: object) -> list[object]:
    [step] = [s for s in workflow.graph.steps if s.name == "u.job"]  # type: ignore[attr-defined]  # a workflow
    return list(step.operation.request["Environment"].values())


def test_an_object_can_not_be_part_of_a_text() -> None:
    wrong = {"join": ["x", {"ref": "fs.file_system"}]}
    with pytest.raises(PipelineError, match=r"stages\.u: .*expected text"):
        pipeline(lustre("fs"), job("u", environment={"X": wrong}))


@pytest.mark.parametrize("key", ["self", "1"])
def test_any_key_of_a_file_can_be_reported(key: str) -> None:
    with pytest.raises(PipelineError, match=f"{key}: is unknown"):
        pipeline(job("a"), **{key: 1})
    with pytest.raises(PipelineError, match="1: is unknown"):
        Pipeline.parse({1: 2})  # type: ignore[dict-item]  # YAML has such keys
