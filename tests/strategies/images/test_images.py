"""Registry paths of framework images; ``tests/sdk`` compares the whole table with the SDK."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from typing import Any

import pytest

from orchestration import PipelineError
from orchestration.strategies import images
from orchestration.strategies.images import uri
from orchestration.strategies.images.table import _load

DLC = "763104351884.dkr.ecr.us-west-2.amazonaws.com"

# What the SageMaker Python SDK 2.257.7 put into requests captured from its estimators.
CAPTURED = [
    ("pytorch", "2.8.0", "py312", "ml.p5.48xlarge", f"{DLC}/pytorch-training:2.8.0-gpu-py312"),
    ("pytorch", "2.8.0", "py312", "ml.m5.xlarge", f"{DLC}/pytorch-training:2.8.0-cpu-py312"),
    ("pytorch", "1.13.1", "py39", "ml.p4d.24xlarge", f"{DLC}/pytorch-training:1.13.1-gpu-py39"),
    (
        *("pytorch", "1.11.0", "py38", "ml.trn1.32xlarge"),
        f"{DLC}/pytorch-training-neuron:1.11.0-neuron-py38-sdk2.4.0-ubuntu20.04",
    ),
    ("tensorflow", "2.11.0", "py39", "ml.c5.2xlarge", f"{DLC}/tensorflow-training:2.11.0-cpu-py39"),
    ("mxnet", "1.9.0", "py38", "ml.p3.16xlarge", f"{DLC}/mxnet-training:1.9.0-gpu-py38"),
    (
        *("huggingface", "4.49.0", "py311", "ml.p4d.24xlarge"),
        f"{DLC}/huggingface-pytorch-training:2.5.1-transformers4.49.0-gpu-py311-cu124-ubuntu22.04",
    ),
    (
        *("xgboost", "1.7-1", None, "ml.m5.2xlarge"),
        "246618743249.dkr.ecr.us-west-2.amazonaws.com/sagemaker-xgboost:1.7-1",
    ),
]


@pytest.mark.parametrize(("framework", "version", "python", "instance_type", "image"), CAPTURED)
def test_gives_what_the_sdk_was_seen_to_send(
    framework: str, version: str, python: str | None, instance_type: str, image: str
) -> None:
    found = uri(framework, version, region="us-west-2", python=python, instance_type=instance_type)
    assert found == image


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("cn-north-1", "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "442386744353.dkr.ecr.us-gov-west-1.amazonaws.com"),
        ("il-central-1", "780543022126.dkr.ecr.il-central-1.amazonaws.com"),
    ],
)
def test_each_partition_has_its_accounts_and_suffix(region: str, registry: str) -> None:
    assert uri("pytorch", "2.6.0", region=region, processor="cpu") == (
        f"{registry}/pytorch-training:2.6.0-cpu-py312"
    )


@pytest.mark.parametrize(
    ("region", "suffix"),
    [
        ("us-iso-east-1", "c2s.ic.gov"),
        ("us-isob-east-1", "sc2s.sgov.gov"),
        ("us-isof-south-1", "csp.hci.ic.gov"),
        ("eu-isoe-west-1", "cloud.adc-e.uk"),
        ("eusc-de-east-1", "amazonaws.eu"),
    ],
)
def test_isolated_and_sovereign_regions_have_their_own_suffix(region: str, suffix: str) -> None:
    there = [image for image in images.images() if region in image.accounts]
    assert there
    tag = next(iter(there[0].tags.values()))
    assert tag is not None
    assert f".dkr.ecr.{region}.{suffix}/" in there[0].uri(region, tag)


def test_a_short_version_gives_the_short_tag_that_aws_publishes() -> None:
    assert uri("pytorch", "2.8", region="us-west-2", processor="gpu") == (
        f"{DLC}/pytorch-training:2.8-gpu-py312"
    )


def test_a_short_hugging_face_version_gives_the_full_tag() -> None:
    assert "transformers4.49.0-" in uri("huggingface", "4.49", region="us-west-2", processor="gpu")


def test_a_built_in_algorithm_needs_no_version_and_no_machine() -> None:
    assert uri("linear-learner", region="us-west-2") == (
        "174872318107.dkr.ecr.us-west-2.amazonaws.com/linear-learner:1"
    )


def test_an_image_for_processing_needs_no_scope() -> None:
    assert uri("clarify", region="us-west-2").endswith("/sagemaker-clarify-processing:1.0")


def test_model_parallel_training_has_images_of_its_own() -> None:
    found = uri(
        "pytorch", "2.4.1", region="us-west-2", instance_type="ml.p5.48xlarge", distribution="smp"
    )
    assert found == (
        "658645717510.dkr.ecr.us-west-2.amazonaws.com/"
        "smdistributed-modelparallel:2.4.1-gpu-py311-cu121"
    )


def test_amazon_linux_2023_images_say_cuda_and_not_gpu() -> None:
    found = uri("pytorch-amzn2023", "2.14", region="us-west-2", processor="gpu")
    assert found == f"{DLC}/pytorch:2.14-cu133-amzn2023-sagemaker"


def test_smddp_gets_the_image_made_for_p4d() -> None:
    asked: dict[str, Any] = {
        "region": "us-west-2",
        "python": "py37",
        "instance_type": "ml.p3dn.24xlarge",
    }
    plain = uri("tensorflow", "2.3.1", **asked)
    assert uri("tensorflow", "2.3.1", **asked, distribution="smddp") == (
        f"{plain}-cu110-ubuntu18.04"
    )


@pytest.mark.parametrize("instance_type", ["ml.c6g.xlarge", "ml.m7g.xlarge", "ml.r8g.xlarge"])
def test_inference_on_any_graviton_gets_the_image_for_it(instance_type: str) -> None:
    found = uri(
        "pytorch", "2.4.0", region="us-west-2", instance_type=instance_type, scope="inference"
    )
    assert found == f"{DLC}/pytorch-inference-graviton:2.4.0-cpu-py311-ubuntu22.04-sagemaker"


@pytest.mark.parametrize(
    ("family", "version", "base", "repository"),
    [
        ("inf1", "4.12.3", "pytorch1.9.1", "huggingface-pytorch-inference-neuron"),
        ("inf2", "4.43.2", "pytorch2.1.2", "huggingface-pytorch-inference-neuronx"),
    ],
)
def test_each_generation_of_inferentia_gets_its_images(
    family: str, version: str, base: str, repository: str
) -> None:
    found = uri(
        *("huggingface", version),
        region="us-west-2",
        base=base,
        instance_type=f"ml.{family}.xlarge",
        scope="inference",
    )
    assert f"/{repository}:" in found


REFUSED = [
    ({"framework": "pytoch"}, "framework: there is no 'pytoch'; did you mean 'pytorch'?"),
    ({"region": "us-wst-2"}, "region: there is no 'us-wst-2'; did you mean 'us-west-2'?"),
    ({"version": "2.8.1"}, "version: pytorch has no '2.8.1' for training; did you mean '2.8.0'?"),
    ({"version": None}, "version: is needed for pytorch; there is 2.10.0, 2.10, 2.9.0"),
    ({"python": "py311"}, "python: pytorch 2.8.0 has no 'py311'; did you mean 'py312'?"),
    (
        {"processor": "tpu"},
        "processor: pytorch 2.8.0 py312 has no image for tpu; there is cpu, gpu",
    ),
    ({"processor": None}, "instance_type: (or processor) is needed for pytorch 2.8.0 py312"),
    ({"scope": "trainig"}, "scope: pytorch has no image for 'trainig'; did you mean 'training'?"),
    ({"base": "pytorch2.8"}, "base: pytorch 2.8.0 has only one; remove 'pytorch2.8'"),
    (
        {"region": "eusc-de-east-1"},
        "region: pytorch 2.8.0 py312 is not in eusc-de-east-1; it is in",
    ),
    ({"distribution": "horovod"}, "distribution: there is no 'horovod'; there is smddp, smp"),
    ({"instance_type": "ml.g5.xlarge"}, "processor: follows from instance_type (ml.g5.xlarge)"),
    (
        {"processor": None, "instance_type": "g5.xlarge"},
        "instance_type: 'g5.xlarge' is not a SageMaker instance type, such as ml.g5.xlarge",
    ),
    (
        {"processor": None, "instance_type": "ml.c7g.xlarge"},
        "instance_type: pytorch has no image for training on Graviton (c7g); it has with scope=",
    ),
    (
        {"processor": None, "instance_type": "ml.p2.xlarge"},
        "instance_type: pytorch 2.8.0 py312 has no image for p2; there is cpu, gpu",
    ),
    (
        {"processor": None, "instance_type": "ml.trn1.2xlarge"},
        "version: pytorch-neuron has no '2.8.0' for training; there is 1.11.0, 1.11; for one that",
    ),
    (
        {"framework": "huggingface", "version": "4.17.0"},
        "base: is needed for huggingface 4.17.0; there is pytorch1.10.2",
    ),
    (
        {"framework": "linear-learner", "version": "1", "python": "py3"},
        "python: linear-learner 1 has only one; remove 'py3'",
    ),
    (
        {"framework": "tensorflow", "version": "2.11.0", "distribution": "smp"},
        "distribution: there is no image of tensorflow with smp; it is for pytorch",
    ),
    (
        {"scope": "inference_graviton", "processor": None, "instance_type": "ml.m5.xlarge"},
        "instance_type: m5 is not a Graviton type, which inference_graviton needs",
    ),
]


@pytest.mark.parametrize(("asked", "message"), REFUSED)
def test_says_what_is_wrong_and_what_there_is(asked: dict[str, str], message: str) -> None:
    every = {"framework": "pytorch", "version": "2.8.0", "region": "us-west-2", "processor": "gpu"}
    with pytest.raises(PipelineError, match=f"^{re.escape(message)}"):
        uri(**(every | asked))  # type: ignore[arg-type]  # wrong values are what is tested


def test_all_that_is_misspelled_is_told_at_once() -> None:
    with pytest.raises(PipelineError) as caught:
        uri("pytoch", "2.8.0", region="us-wst-2", instance_type="g5")
    assert [problem.path for problem in caught.value.problems] == [
        "framework",
        "region",
        "instance_type",
    ]


def test_each_image_is_in_the_table_once() -> None:
    keys = [(i.framework, i.scope, i.version, i.base, i.python) for i in images.images()]
    assert len(keys) == len(set(keys)) > 1200


@pytest.mark.slow
def test_each_image_can_be_asked_for_in_each_of_its_regions() -> None:
    path = re.compile(
        r"\d{12}\.dkr\.ecr\.([a-z0-9-]+)\.[a-z0-9.-]+/[a-z0-9][a-z0-9_/-]*(:[A-Za-z0-9][\w.-]{0,127})?"
    )
    for image in images.images():
        processor = next(key for key, tag in image.tags.items() if tag is not None) or None
        assert image.accounts
        for region in image.accounts:
            found = uri(
                image.framework,
                image.version,
                region=region,
                python=image.python,
                processor=processor,
                scope=image.scope,
                base=image.base,
            )
            match = path.fullmatch(found)
            assert match, found
            assert match[1] == region


def test_versions_come_newest_first() -> None:
    assert images.versions("pytorch")[:3] == ("2.10.0", "2.10", "2.9.0")
    assert images.versions("pytorch", "sculpture") == ()


def test_the_table_says_where_it_is_from() -> None:
    source = images.source()
    assert source.sdks == ("sagemaker 2.257.7", "sagemaker-core 2.27.0")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", source.date)
    assert "Apache License, Version 2.0" in source.licence


def test_the_table_is_small() -> None:
    table = resources.files(images).joinpath("table.json")
    assert len(table.read_bytes()) < 128 * 1024


def test_importing_reads_no_table() -> None:
    code = (
        "import sys, orchestration.strategies.images as images\n"
        "from orchestration.strategies.images import table\n"
        "assert table._load.cache_info().currsize == 0\n"
        "assert 'sagemaker' not in sys.modules and 'botocore' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_first_answer_does_not_take_seconds() -> None:
    code = (
        "import time\n"
        "from orchestration.strategies.images import uri\n"
        "start = time.process_time()\n"
        "uri('pytorch', '2.8.0', region='us-west-2', processor='gpu')\n"
        "print(time.process_time() - start)\n"
    )
    first = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(first.stdout) < 2


def test_further_answers_read_no_table() -> None:
    uri("pytorch", "2.8.0", region="us-west-2", processor="gpu")
    read = _load.cache_info().misses
    for region in ("us-west-2", "eu-west-1"):
        uri("pytorch", "2.8.0", region=region, processor="gpu")
    assert _load.cache_info().misses == read
