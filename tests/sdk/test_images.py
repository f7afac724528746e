"""Every image of the table against what the SageMaker Python SDK answers, V2 or V3.

Needs an environment with one of them (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import itertools
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestration import PipelineError
from orchestration.strategies import images

if importlib.util.find_spec("sagemaker") is None:
    pytest.skip("needs the SageMaker Python SDK (make test-sdk)", allow_module_level=True)


def _sdk() -> tuple[int, Any]:
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generation = 3 if importlib.util.find_spec("sagemaker.core") else 2
        core = "sagemaker.core" if generation == 3 else "sagemaker"
        utils = importlib.import_module(f"{core}.{'common_utils' if generation == 3 else 'utils'}")
        found = importlib.import_module(f"{core}.image_uris")
    # Read afresh for every question otherwise: hours instead of seconds.
    vars(found)["config_for_framework"] = functools.cache(found.config_for_framework)
    vars(utils)["_botocore_resolver"] = functools.cache(vars(utils)["_botocore_resolver"])
    # The SDK asks for it at every call, and `inspect` works it out each time.
    retrieve = inspect.unwrap(found.retrieve)
    vars(retrieve)["__signature__"] = inspect.signature(retrieve)
    return generation, found


GENERATION, SDK = _sdk()

FAMILIES = (
    *("m5", "c5", "t3", "r7i", "g4dn", "g5", "g6e", "p2", "p3", "p3dn", "p4d", "p4de"),
    *("p5", "p5e", "p5en", "p6-b200", "inf1", "inf2", "trn1", "trn1n", "trn2"),
    *("c6g", "m6gd", "c7g", "m7g", "c7gn", "r8g"),
)
GRAVITON = frozenset({"c6g", "m6gd", "c7g", "m7g", "c7gn", "r8g"})
GRAVITON_OF_THE_SDK = frozenset({"c6g", "m6gd", "c7g"})
ON = {
    "cpu": "ml.m5.xlarge",
    "gpu": "ml.g5.xlarge",
    "inf": "ml.inf1.xlarge",
    "inf2": "ml.inf2.xlarge",
    "trn": "ml.trn1.2xlarge",
}
SMP = {
    "torch_distributed": {"enabled": True},
    "smdistributed": {"modelparallel": {"enabled": True}},
}
ONLY_IN_V2 = {("huggingface-neuronx", "4.55", base) for base in ("pytorch2.7", "pytorch2.7.1")} | {
    ("huggingface-neuronx", "4.55.4", base) for base in ("pytorch2.7", "pytorch2.7.1")
}


@dataclass(frozen=True)
class Question:
    """An image as the SDK's own tables name it."""

    framework: str
    scope: str
    version: str
    full_version: str
    base: str | None
    python: str | None
    accounts: Mapping[str, str]
    processors: tuple[str, ...]
    repository: str
    build: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str, str | None, str | None]:
        return self.framework, self.scope, self.version, self.base, self.python

    def sdk(self, region: str, instance_type: str | None, scope: str | None = None) -> str:
        """What the SDK answers."""
        if self.framework == "sagemaker-base-python":
            return str(SDK.get_base_python_image_uri(region, (self.python or "")[2:]))
        if self.framework == "pytorch-smp":
            return str(
                SDK.get_training_image_uri(
                    region,
                    "pytorch",
                    self.version,
                    self.python,
                    distribution=SMP,
                    instance_type=instance_type,
                )
            )
        framework, options = self._special(instance_type)
        return str(
            SDK.retrieve(
                framework,
                region,
                version=self.version,
                py_version=self.python,
                image_scope=scope or self.scope,
                instance_type=instance_type,
                base_framework_version=self.base,
                **options,
            )
        )

    def _special(self, instance_type: str | None) -> tuple[str, dict[str, Any]]:
        match = re.fullmatch("(huggingface|pytorch)-(neuronx?|training-compiler)", self.framework)
        if match and match[2] == "training-compiler":
            return match[1], {"training_compiler_config": object()}
        if match:
            return match[1], {"inference_tool": match[2]}
        gpu = instance_type is not None and instance_type[3] in "gp"
        if self.framework == "huggingface" and gpu and not self.build:
            # As its estimator asks; without it the tag is none that was published.
            return self.framework, {"container_version": "cu110-ubuntu18.04"}
        return self.framework, {}

    def ours(self, region: str, **where: Any) -> str:
        """What we answer."""
        asked = {"scope": self.scope, "base": self.base, "python": self.python}
        return images.uri(self.framework, self.version, region=region, **(asked | where))


def _frameworks() -> list[str]:
    folder = Path(SDK.__file__).with_name("image_uri_config")
    return sorted({path.stem for path in folder.glob("*.json")} - {"instance_gpu_info"})


def _questions(framework: str) -> Iterator[Question]:
    config = SDK.config_for_framework(framework)
    parts = config
    if "versions" in config:
        parts = dict.fromkeys(config.get("scope", ["training"]), config)
    for scope, part in parts.items():
        aliases = part.get("version_aliases", {})
        for version in {**part["versions"], **aliases}:
            full = aliases.get(version, version)
            leaves = list(_leaves(part["versions"][full]))
            for base, python, leaf in leaves:
                processors = part.get("processors") or leaf.get("processors") or [""]
                found = Question(
                    *(framework, scope, version, full, base, python),
                    accounts=leaf["registries"],
                    processors=tuple(processors),
                    repository=leaf["repository"],
                    build=leaf.get("container_version", {}),
                )
                if _published(found):
                    yield from _with_pythons(found)


def _leaves(config: Mapping[str, Any]) -> Iterator[tuple[str | None, str | None, Any]]:
    """The images of a version: by base framework, by Python, or both, as the SDK nests them."""
    based = {name: leaf for name, leaf in config.items() if name[:7] in ("pytorch", "tensorf")}
    for alias, base in config.get("version_aliases", {}).items():
        based.setdefault(alias, config[base])
    for base, leaf in based.items() or [("", config)]:
        if "repository" in leaf:
            for python in leaf.get("py_versions") or [None]:
                yield base or None, python, leaf
        else:
            for python, inner in leaf.items():
                yield base or None, python, inner


def _published(question: Question) -> bool:
    if question.framework == "pytorch-smp":
        # Versions of the library itself; its images are named by those of PyTorch.
        return question.version not in ("2.5.0", "2.7.0", "2.8.0")
    # What this short version stands for has moved on from V2 to V3.
    moved = (GENERATION, question.framework, question.version)
    return moved != (2, "huggingface-vllm-neuronx", "0.4")


def _with_pythons(question: Question) -> Iterator[Question]:
    if question.framework == "sagemaker-base-python":
        yield replace(question, python="py310")
        yield replace(question, python="py38")
    elif question.framework == "spark":
        # Its processor gives a Python only together with a build, which is the user's to know.
        yield replace(question, python=None)
    else:
        yield question


def _expected(question: Question, region: str, instance_type: str | None) -> str:
    answer = question.sdk(region, instance_type)
    if GENERATION == 2 and question.framework == "huggingface":
        # V3 mends it: 4.36 stands for 4.36.0 in the tag too, which is what was published.
        asked, full = (f"transformers{v}-" for v in (question.version, question.full_version))
        return answer.replace(asked, full)
    if GENERATION == 2 and question.framework == "huggingface-vllm-neuronx":
        return answer.replace("-inf2-", "-neuronx-")  # which V3 mends too
    return answer


def _unreachable(question: Question) -> bool:
    """The SDK knows Hugging Face's Trainium images and refuses every instance type for them."""
    return question.framework == "huggingface-neuronx" and question.scope == "training"


def _instance_types(question: Question) -> Iterator[tuple[str, str | None]]:
    """Each processor, with an instance type that leads there in the SDK."""
    for processor in question.processors:
        if question.scope == "inference_graviton":
            yield processor, "ml.c6g.xlarge"
        elif (GENERATION, question.framework) == (2, "huggingface-vllm-neuronx"):
            yield "neuronx", "ml.inf2.xlarge"
        elif processor in ("", "neuronx"):
            yield processor, None
        else:
            yield processor, ON.get(processor, f"ml.{processor}.xlarge")


def _or_refused(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except (PipelineError, ValueError, KeyError):
        return "refused"


compared = itertools.count()


@pytest.mark.parametrize("framework", _frameworks())
def test_every_version_python_processor_scope_and_region_answers_as_the_sdk(framework: str) -> None:
    different = []
    for question in _questions(framework):
        for processor, instance_type in _instance_types(question):
            if _unreachable(question):
                continue
            for region in question.accounts:
                expected = _expected(question, region, instance_type)
                ways = {"processor": {"processor": processor or None}}
                if instance_type is not None:
                    ways["instance_type"] = {"instance_type": instance_type}
                for way, where in ways.items():
                    next(compared)
                    ours = _or_refused(functools.partial(question.ours, region, **where))
                    if ours != expected:
                        different.append((question.key, region, way, expected, ours))
    assert different[:20] == []


@pytest.mark.parametrize("framework", _frameworks())
def test_we_know_the_regions_that_the_sdk_knows_and_no_others(framework: str) -> None:
    known = {
        (image.framework, image.scope, image.version, image.base, image.python): image.accounts
        for image in images.images(framework)
    }
    different = [
        question.key
        for question in _questions(framework)
        if not (GENERATION == 2 or dict(question.accounts) == dict(known[question.key]))
        or not question.accounts.items() <= known[question.key].items()
    ]
    assert different == []


@pytest.mark.skipif(GENERATION == 2, reason="the table has what V3 knows beyond V2")
def test_the_sdk_knows_every_image_of_ours() -> None:
    known = {question.key for framework in _frameworks() for question in _questions(framework)}
    beyond = {
        (image.framework, image.version, image.base)
        for image in images.images()
        if (image.framework, image.scope, image.version, image.base, image.python) not in known
    }
    assert beyond == ONLY_IN_V2


def _departure(question: Question, family: str, expected: str, ours: str) -> str | None:
    """Why we answer otherwise than the SDK on a family of instances, and mean to."""
    graviton = family in GRAVITON
    if question.framework == "sagemaker-base-python" and ours == "refused":
        return "the SDK does not ask on what it runs; it is for x86"
    if graviton and question.scope not in ("inference", "inference_graviton"):
        return "the SDK gives an inference image, or one for x86, for other work on Graviton"
    if graviton and family not in GRAVITON_OF_THE_SDK:
        return "the SDK doesn't know this Graviton, and gives the image for x86"
    if graviton and "-arm64:" in ours and expected == "refused":
        return "V2 doesn't know the image, or the SDK refuses its own image for arm64 on Graviton"
    if graviton and question.framework == "sklearn" and ours == "refused":
        return "the SDK gives its only version for Graviton, whatever version is asked for"
    if question.scope == "inference_graviton" and not graviton:
        return "the SDK gives a Graviton image on other machines"
    if family.startswith(("inf", "trn")) and "neuron" in ours + expected:
        return "the SDK refuses the machines that Neuron images are for, or gives PyTorch 1.11.0's"
    return None


@pytest.mark.parametrize("framework", _frameworks())
def test_every_family_of_instances_answers_as_the_sdk_or_better(framework: str) -> None:
    different = []
    for question in _questions(framework):
        # Where all images are; a few are missing in most regions.
        region = "us-west-2" if "us-west-2" in question.accounts else min(question.accounts)
        for family in FAMILIES:
            instance_type = f"ml.{family}.xlarge"
            expected = _or_refused(
                functools.partial(_expected, question, region, instance_type),
            )
            ours = _or_refused(
                functools.partial(question.ours, region, instance_type=instance_type)
            )
            next(compared)
            if ours != expected and _departure(question, family, expected, ours) is None:
                different.append((question.key, family, expected, ours))
    assert different[:20] == []


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mxnet"])
def test_smddp_gets_the_images_that_the_sdk_gives_it(framework: str) -> None:
    different = []
    distribution = {"smdistributed": {"dataparallel": {"enabled": True}}}
    for question in _questions(framework):
        if question.scope != "training" or "gpu" not in question.processors:
            continue
        for family in ("p3", "p3dn", "p4d", "p4de", "g5"):
            instance_type = f"ml.{family}.xlarge"
            expected = SDK.retrieve(
                framework,
                "us-west-2",
                version=question.version,
                py_version=question.python,
                image_scope="training",
                instance_type=instance_type,
                distribution=distribution,
            )
            ours = question.ours("us-west-2", instance_type=instance_type, distribution="smddp")
            if ours != expected:
                different.append((question.key, family, expected, ours))
    assert different == []


def test_enough_was_compared(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    count = next(compared)
    record_testsuite_property(f"registry paths compared with V{GENERATION}", count)
    assert count == 0 or count > 100_000
