"""Code and containers of a deployment, and what is refused of them beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Deployment, Pipeline, Source, join
from orchestration.errors import PipelineError
from orchestration.stages.stage import Context
from tests.stages.test_endpoint_updates import calls, deployment

PYTORCH = {"name": "pytorch", "version": "2.6"}
CODE = Source(entry_point="inference.py", uri="s3://bucket/code")


def framed(**fields: Any) -> Deployment:
    return deployment(**{"image": None, **fields})


def container(stage: Deployment) -> dict[str, Any]:
    graph = (
        Pipeline(name="p", workspace="s3://b/w", region="eu-west-1", stages=[stage]).lower().graph
    )
    [model] = [s for s in graph.steps if s.name == "deploy.model"]
    request: Any = model.operation.request  # type: ignore[union-attr]
    return dict(request["PrimaryContainer"])


@pytest.mark.parametrize(
    ("framework", "instance_type", "image"),
    [
        (PYTORCH, "ml.g5.xlarge", "pytorch-inference:2.6-gpu-py312"),
        (PYTORCH, "ml.m5.large", "pytorch-inference:2.6-cpu-py312"),
        ({"name": "xgboost", "version": "1.7-1"}, "ml.m5.large", "sagemaker-xgboost:1.7-1"),
    ],
)
def test_a_framework_gives_the_image_that_serves(
    framework: dict[str, Any], instance_type: str, image: str
) -> None:
    made = container(framed(framework=framework, instance_type=instance_type))
    assert made["Image"].endswith(f".dkr.ecr.eu-west-1.amazonaws.com/{image}")


def test_code_lies_beside_the_model_and_is_found_there() -> None:
    made = container(deployment(source=CODE, environment={"MODE": "fast"}))
    [beside] = made["AdditionalModelDataSources"]
    assert beside["S3DataSource"]["S3Uri"] == join("s3://bucket/code/files/")
    folder = f"/opt/ml/additional-model-data-sources/{beside['ChannelName']}"
    assert made["Environment"] == {
        "SAGEMAKER_PROGRAM": "inference.py",
        "SAGEMAKER_SUBMIT_DIRECTORY": folder,
        "PYTHONPATH": folder,
        "MODE": "fast",
    }


def test_other_code_is_another_model() -> None:
    def name(uri: str) -> Any:
        code = Source(entry_point="inference.py", uri=uri)
        steps = calls(deployment(update={}, source=code))
        return steps["deploy.model"].operation.request["ModelName"]

    assert name("s3://bucket/a") == name("s3://bucket/a") != name("s3://bucket/b")


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({}, "image", "is needed; or a framework"),
        ({"image": "i", "framework": PYTORCH}, "framework", "there is an image already"),
        ({"framework": {"name": "pytorch"}}, "framework.version", "is needed for pytorch"),
        ({"framework": {"name": "spark", "version": "3.5"}}, "framework", "spark has no image for"),
        (
            {"image": "i", "source": Source(entry_point="a.py", uri="s3://b/c.tar.gz")},
            "source",
            "is an archive, which is not unpacked beside a model; give it a directory",
        ),
        (
            {"image": "i", "source": Source(entry_point="src/a.py", uri="s3://b/c")},
            "source.entry_point",
            "expected a module at the top, as inference.py",
        ),
        (
            {"framework": {"name": "tensorflow", "version": "2.18"}, "source": CODE},
            "source",
            "TensorFlow's container reads only code/ in the model; let training write it",
        ),
        (
            {"image": "i", "source": CODE, "environment": {"PYTHONPATH": "/x"}},
            "environment.PYTHONPATH",
            "the source sets it; remove it",
        ),
    ],
)
def test_code_that_would_not_be_found_is_an_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    found = {each.field: each.message for each in framed(**fields).check()}
    assert found[field].startswith(message)


def test_a_framework_has_its_image_in_a_region_that_is_said() -> None:
    with pytest.raises(PipelineError, match="has its image in the pipeline's region"):
        framed(framework=PYTORCH).registry_path(Context(pipeline="p", workspace="s3://b", role="r"))
