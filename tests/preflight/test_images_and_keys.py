"""Images and keys that requests name: there, in the region, and of the right kind."""

from __future__ import annotations

import pytest

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import REGISTRY, TRAINING, Examine, pipeline, push

IMAGE = f"{REGISTRY}/train:1"
ROLE = "parameters: {bucket"


def test_an_image_that_is_there_is_no_finding(found: Examine) -> None:
    assert found(pipeline(), "images") == []


@pytest.mark.parametrize(
    ("image", "what"),
    [
        (f"{REGISTRY}/nothing:1", "registry 123456789012 has no repository nothing"),
        (f"{REGISTRY}/train:2", "repository train has no image 2"),
        (f"{REGISTRY}/train", "repository train has no image latest"),
    ],
)
def test_a_missing_image_fails_the_run(found: Examine, image: str, what: str) -> None:
    [finding] = found(pipeline(TRAINING, (IMAGE, image)), "images")
    assert (finding.severity, finding.where, finding.what) == ("fails", "stages.train.image", what)


def test_an_image_of_another_region_fails_the_run(found: Examine) -> None:
    given = (ROLE, "parameters: {image: {}, bucket")
    checked = pipeline(TRAINING, (IMAGE, "{parameter: image}"), given)
    abroad = IMAGE.replace("us-east-1", "eu-west-1")
    [finding] = found(checked, "images", image=abroad)
    assert (finding.severity, finding.where) == ("fails", "stages.train.image")
    assert finding.what == f"image {abroad} is in eu-west-1, and runs are in us-east-1"


def test_an_image_of_another_architecture_fails_the_run(aws: EmbeddedAws, found: Examine) -> None:
    push(aws, "arm", "arm64")
    push(aws, "both", "amd64", "arm64")
    named = (IMAGE, f"{REGISTRY}/train:arm")
    [finding] = found(pipeline(TRAINING, named), "images")
    assert (finding.severity, finding.where) == ("fails", "stages.train.image")
    assert finding.what.endswith("train:arm is built for arm64, and ml.c5.xlarge is amd64")
    deployed = pipeline(DEPLOYED, ("IMAGE", IMAGE))
    [other] = found(deployed, "images")
    assert (other.severity, other.where) == ("fails", "stages.deploy.image")
    assert other.what.endswith("train:1 is built for amd64, and ml.c6g.xlarge is arm64")
    for text, image in ((TRAINING, IMAGE), (DEPLOYED, "IMAGE")):
        both = pipeline(text, (image, f"{REGISTRY}/train:both"))
        assert found(both, "images") == []


def test_cuda_in_an_image_whose_tag_says_nothing_is_compared_with_the_accelerators(
    aws: EmbeddedAws, found: Examine
) -> None:
    push(aws, "mine", "amd64", CUDA_VERSION="11.7.1")
    push(aws, "new", "amd64", "arm64", CUDA_VERSION="12.9.0")
    gpus = ("ml.c5.xlarge", "ml.p5.4xlarge")
    for image, text in ((IMAGE, TRAINING), ("IMAGE", PROCESSING)):
        old = pipeline(text, (image, f"{REGISTRY}/train:mine"), *[gpus] * (gpus[0] in text))
        [finding] = found(old, "images")
        assert (finding.severity, finding.where.rpartition(".")[2]) == ("fails", "image")
        assert "need CUDA 11.8 or later; the container has CUDA 11.7" in (
            f"{finding.what}; {finding.mend}"
        )
        new = pipeline(text, (image, f"{REGISTRY}/train:new"), *[gpus] * (gpus[0] in text))
        assert found(new, "images") == []


DEPLOYED = """\
name: NAME
workspace: s3://workspace/work
stages:
  deploy:
    kind: deployment
    image: IMAGE
    model_data: s3://incoming/model.tar.gz
    model_archive: true
    instance_type: ml.c6g.xlarge
"""
PROCESSING = """\
name: NAME
workspace: s3://workspace/work
stages:
  prepare:
    kind: processing_job
    image: IMAGE
    command: [python3, prepare.py]
    cluster: {instance_type: ml.p5.4xlarge}
"""


def test_software_too_old_for_the_accelerators_fails_the_run(
    aws: EmbeddedAws, found: Examine
) -> None:
    push(aws, "1.13.1-gpu-py39-cu117")
    old = ("IMAGE", f"{REGISTRY}/train:1.13.1-gpu-py39-cu117")
    [finding] = found(pipeline(PROCESSING, old), "images")
    assert (finding.severity, finding.where) == ("fails", "stages.prepare.image")
    assert "need CUDA 11.8 or later; the container has CUDA 11.7" in (
        f"{finding.what}; {finding.mend}"
    )


KEYED = ("instance_count: 2", "instance_count: 2, volume_kms_key: KEY")
WHERE = "stages.train.cluster.volume_kms_key"


def test_a_key_is_there_and_enabled(aws: EmbeddedAws, found: Examine) -> None:
    kms = aws.client("kms")
    made = kms.create_key()["KeyMetadata"]
    key, name = made["Arn"], made["KeyId"]
    checked = pipeline(TRAINING, KEYED, ("KEY", f'"{key}"'))
    assert found(checked, "keys") == []
    kms.disable_key(KeyId=name)
    [finding] = found(checked, "keys")
    assert (finding.severity, finding.where, finding.what) == (
        "fails",
        WHERE,
        f"key {key} is Disabled",
    )
    kms.schedule_key_deletion(KeyId=name, PendingWindowInDays=7)
    [finding] = found(checked, "keys")
    assert finding.mend == "cancel its deletion"


def test_a_key_that_is_missing_or_abroad_fails_the_run(found: Examine) -> None:
    for key, what in (
        ("alias/none", "key alias/none does not exist in us-east-1"),
        ("arn:aws:kms:eu-west-1:123456789012:key/1", "is in eu-west-1, and runs are in us-east-1"),
    ):
        [finding] = found(pipeline(TRAINING, KEYED, ("KEY", f'"{key}"')), "keys")
        assert (finding.severity, finding.where) == ("fails", WHERE)
        assert what in finding.what


def test_a_key_for_signatures_fails_the_run(aws: EmbeddedAws, found: Examine) -> None:
    made = aws.client("kms").create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")
    key = made["KeyMetadata"]["Arn"]
    [finding] = found(pipeline(TRAINING, KEYED, ("KEY", f'"{key}"')), "keys")
    assert finding.what == f"key {key} is of the kind RSA_2048"
