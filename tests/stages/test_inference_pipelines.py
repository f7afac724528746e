"""Containers before and after a model's own: the requests, and what is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Deployment, Pipeline
from orchestration.errors import PipelineError
from tests.guides import DEPLOYMENT, shown
from tests.stages import test_evaluation as evaluation
from tests.stages.test_endpoint_updates import calls, deployment

BEFORE = {"image": "i:before", "model_data": "s3://bucket/before/"}
AFTER = {"image": "i:after", "source": {"entry_point": "label.py", "uri": "s3://bucket/code"}}


def sequence(**fields: Any) -> Deployment:
    return deployment(**{"preprocessing": (BEFORE,), "postprocessing": (AFTER,), **fields})


def found(stage: Deployment) -> dict[str, str]:
    return {each.field: each.message for each in stage.check()}


def test_the_containers_are_called_in_their_order() -> None:
    request: Any = calls(sequence())["deploy.model"].operation.request
    assert "PrimaryContainer" not in request
    assert request["InferenceExecutionConfig"] == {"Mode": "Serial"}
    first, own, last = request["Containers"]
    assert [first["Image"], own["Image"], last["Image"]] == ["i:before", "image:1", "i:after"]
    # Code without a model is what its container finds as its model.
    assert "AdditionalModelDataSources" not in last
    assert last["Environment"]["PYTHONPATH"] == "/opt/ml/model"


def test_other_files_of_any_container_are_another_model() -> None:
    steps = calls(sequence(update={}))
    looks = [name for name in steps if name.startswith("deploy.fingerprint")]
    assert looks == ["deploy.fingerprint", "deploy.fingerprint_preprocessing_0"]
    plain = calls(deployment(update={}))["deploy.model"].operation.request["ModelName"]
    assert steps["deploy.model"].operation.request["ModelName"] != plain


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"preprocessing": ({},)}, "preprocessing[0].image", "is needed; or a framework"),
        (
            {"postprocessing": ({**AFTER, "model_archive": True},)},
            "postprocessing[0].model_archive",
            "there is no model_data; remove it",
        ),
        (
            {"postprocessing": ({**AFTER, "environment": {"PYTHONPATH": "/x"}},)},
            "postprocessing[0].environment.PYTHONPATH",
            "the source sets it; remove it",
        ),
        (
            {"preprocessing": (BEFORE,) * 14},
            "preprocessing",
            "16 containers with the model's own; the most is 15",
        ),
        (
            {"serverless": {}, "instance_type": None},
            "preprocessing",
            "a serverless endpoint has one container; remove it",
        ),
        (
            {"model_data": None, "image": None, "package_group": "g"},
            "preprocessing",
            "give it to the model_registration: a version has its containers",
        ),
        (
            {"extra_request": {"CreateModel": {"PrimaryContainer": {"Mode": "MultiModel"}}}},
            "extra_request.CreateModel.PrimaryContainer",
            "the stage sets Containers, and a model has only one of the two; remove it",
        ),
        (
            {
                "preprocessing": (),
                "postprocessing": (),
                "extra_request": {"CreateModel": {"Containers": []}},
            },
            "extra_request.CreateModel.Containers",
            "the stage sets PrimaryContainer, and a model has only one of the two; remove it",
        ),
    ],
)
def test_what_can_not_be_called_in_sequence_is_an_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    assert found(sequence(**fields))[field] == message


def test_a_packed_model_and_a_foreign_image_are_found_in_any_container() -> None:
    image = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/own:1"
    packed = {"image": image, "model_data": "s3://bucket/model.tar.gz"}
    stage = deployment(preprocessing=(packed,))
    with pytest.raises(PipelineError) as error:
        Pipeline(name="p", workspace="s3://b/w", region="us-east-1", stages=[stage])
    fields = {each.path for each in error.value.problems}
    place = "stages.deploy.preprocessing[0]"
    assert fields == {f"{place}.image", f"{place}.model_data"}


@pytest.mark.parametrize(("container", "wrong"), [(1, True), (2, False)])
def test_a_champion_is_the_model_s_own_container(container: int, wrong: bool) -> None:
    champion = {"endpoint": "live", "container": container}
    made = evaluation.pipeline(evaluation.OF_CHECKPOINTS, champion=champion)
    serves = deployment(endpoint_name="live", preprocessing=(BEFORE,))
    message = "stage 'deploy' has its model in container 2; give that"
    found = [each.message for each in made.stages[-1].check_beside({"deploy": serves})]
    assert found == ([message] if wrong else [])
    described = evaluation.step(made.lower(), "champion.model")
    paths = [output.path for output in described.outputs.values()]
    assert {path[1] for path in paths if path[0] == "Containers"} == {container - 1}


def test_code_of_any_container_that_the_guide_shows_is_locked_and_uploaded(tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "labels.py").write_text("def model_fn(folder): return folder\n")
    path = tmp_path / "shop.yaml"
    guide, added, *_ = shown(DEPLOYMENT, "yaml")
    path.write_text(guide.replace("    update:", f"{added}    update:"))
    stage = Pipeline.load(path).stages[0]
    [(field, source)] = stage.sources()
    assert field == "postprocessing[0].source"
    assert source.sha256 is not None
