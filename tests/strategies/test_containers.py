"""The GPUs and Neuron cores that a container's software can drive."""

from __future__ import annotations

import pytest

from orchestration.catalog import accelerators, instances
from orchestration.strategies import NoStrategy, TorchDistributed, Use, device_findings, findings
from orchestration.strategies.containers import container_of_image, software
from orchestration.strategies.findings import first_version
from orchestration.strategies.images import versions

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


def refused(use: Use) -> list[str]:
    """The certain problems of torchrun, apart from its own rules."""
    return [finding.message for finding in findings(TorchDistributed(), use) if finding.certain]


def pytorch(version: str, instance_type: str) -> Use:
    return Use(
        framework="pytorch", framework_version=version,
        instance_types=(instance_type,), instance_count=1,
    )  # fmt: skip


@pytest.mark.parametrize("version", ["2.5.1", "2.1", "1.13", "2.6.0"])
@pytest.mark.parametrize("name", ["ml.p6-b200.48xlarge", "ml.p6-b300.48xlarge", "ml.g7e.2xlarge"])
def test_blackwell_is_refused_to_containers_from_before_cuda_12_8(version: str, name: str) -> None:
    [message] = refused(pytorch(version, name))
    assert name in message
    assert "CUDA 12.8" in message
    assert "PyTorch 2.7.1 or later" in message


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("2.7.1", "ml.p6-b200.48xlarge"),
        ("2.8", "ml.p6-b300.48xlarge"),
        ("2.7", "ml.p6-b300.48xlarge"),
        ("2.0.0", "ml.p5.48xlarge"),
        ("2.5.1", "ml.p5en.48xlarge"),
        ("1.13.1", "ml.p4d.24xlarge"),
        ("1.13.1", "ml.g6.xlarge"),
        ("1.13.1", "ml.p3.2xlarge"),
    ],
)
def test_containers_drive_the_gpus_that_their_cuda_knows(version: str, name: str) -> None:
    assert refused(pytorch(version, name)) == []


def test_hopper_needs_cuda_11_8() -> None:
    [message] = refused(pytorch("1.13.1", "ml.p5.48xlarge"))
    assert "CUDA 11.8" in message
    assert "CUDA 11.7" in message


def test_b300_with_the_cuda_of_b200_is_a_doubt() -> None:
    [finding] = findings(NoStrategy(), pytorch("2.7.1", "ml.p6-b300.48xlarge"))
    assert not finding.certain
    assert "CUDA 12.9" in finding.message


@pytest.mark.parametrize(
    ("tag", "name", "works"),
    [
        ("pytorch-training:2.5.1-gpu-py311-cu124-ubuntu22.04-sagemaker", "ml.p6-b200.48xlarge", 0),
        ("pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-sagemaker", "ml.p6-b200.48xlarge", 1),
        ("pytorch-training-neuronx:2.1.2-neuronx-py310-sdk2.20.0", "ml.trn2.48xlarge", 0),
        ("pytorch-training-neuronx:2.5.1-neuronx-py310-sdk2.21.0", "ml.trn2.48xlarge", 1),
        ("pytorch-training-neuronx:2.5.1-neuronx-py310-sdk2.21.0", "ml.p5.48xlarge", 0),
        ("pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-sagemaker", "ml.trn1.32xlarge", 0),
        ("pytorch-training:2.8.0-cpu-py312-ubuntu22.04-sagemaker", "ml.p5.48xlarge", 0),
    ],
)
def test_an_images_tag_says_what_it_can_drive(tag: str, name: str, works: int) -> None:
    use = Use(image=f"{REGISTRY}/{tag}", instance_types=(name,), instance_count=1)
    assert (refused(use) == []) == bool(works)


def test_an_image_of_ones_own_is_not_judged() -> None:
    use = Use(image="mine:1", instance_types=("ml.p6-b200.48xlarge",), instance_count=1)
    assert refused(use) == []


def test_trainium2_needs_the_neuron_sdk_that_knows_it() -> None:
    [message] = refused(pytorch("1.11.0", "ml.trn2.48xlarge"))
    assert "2.21.0" in message


def test_there_is_no_training_container_for_grace_processors() -> None:
    [message] = refused(pytorch("2.8.0", "ml.p6e-gb200.36xlarge"))
    assert "Arm" in message


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mxnet"])
def test_every_container_of_the_sdk_has_its_cuda_version(framework: str) -> None:
    """Those from before CUDA 10.1 know no GPU that came later, so that one row stands for them."""
    for version in versions(framework):
        if version.count(".") == 2:
            assert software(framework, version).cuda, version


@pytest.mark.parametrize(
    ("framework", "version", "certain"),
    [("mxnet", "1.9.0", False), ("tensorflow", "2.11.0", False), ("pytorch", "2.5.1", True)],
)
def test_no_container_from_before_blackwell_drives_it_without_a_word(
    framework: str, version: str, certain: bool
) -> None:
    types = ("ml.p6-b200.48xlarge",)
    use = Use(framework=framework, framework_version=version, instance_types=types)
    [finding] = device_findings(use)
    assert finding.certain == certain
    assert "CUDA 12.8" in finding.message


def test_every_gpu_has_its_compute_capability() -> None:
    for accelerator in accelerators().values():
        assert (accelerator.capability is not None) == (accelerator.vendor == "nvidia")


def test_the_first_container_of_an_instance_type_is_known() -> None:
    assert first_version("pytorch", "ml.p6-b200.48xlarge") == "2.7.1"
    assert first_version("pytorch", "ml.p6-b300.48xlarge") == "2.8.0"
    assert first_version("pytorch", "ml.p5.48xlarge") == "2.0.0"
    assert first_version("pytorch", "ml.c5.xlarge") is None
    gpus = [each.name for each in instances().values() if (each.accelerator or "")[:2] == "v1"]
    assert {first_version("pytorch", name) for name in gpus} == {None}


def test_a_tag_without_versions_says_nothing() -> None:
    assert container_of_image("mine:latest") == container_of_image("mine")
    assert container_of_image("x:cu128-thing").cuda == "12.8"
