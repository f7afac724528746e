"""Container images: they exist in the region, and fit the machines that run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from orchestration import strategies
from orchestration.deploy.identities.touched import touched
from orchestration.graph import stage_of
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule, Severity
from orchestration.preflight.image_contents import Build, builds, manifest
from orchestration.preflight.machines import ASKING, machines
from orchestration.preflight.places import beside, place
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request, known
from orchestration.strategies import NoStrategy, Use

_RULE: Final = Rule(
    check="images",
    why="SageMaker pulls the image from the registry of the region before it starts anything",
    sources=(
        "https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_BatchGetImage.html",
        "https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_GetDownloadUrlForLayer.html",
        "https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo.html",
    ),
)
_REPOSITORY: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[\w-]+)\.[\w.]+/(?P<name>[^:@]+)"
    r"(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
"""Architectures of images by those of EC2."""


def images(examination: Examination) -> Iterator[Finding]:
    """Yield the images that can't be pulled, and those that can't run on their machines."""
    types: dict[str, dict[str, None]] = {}
    for request in examination.of(*ASKING):
        named = dict.fromkeys(each.type for each in machines(request))
        types.setdefault(stage_of(request.step), {}).update(named)
    seen: set[tuple[str, str]] = set()
    for request in examination.requests:
        for image, where in _named(examination, request):
            if (image, where) not in seen:
                seen.add((image, where))
                own = tuple(types.get(stage_of(request.step), ()))
                look = _image(examination, image, own, request, where)
                yield from looked("images", where, f"image {image}", look)


def _named(examination: Examination, request: Request) -> Iterator[tuple[str, str]]:
    trees = touched(request.operation.request)
    for touch, written in beside(touched(request.values), trees):
        asked = None if written is None else written.value
        if touch.use == "image" and isinstance(touch.value, str) and known(touch.value):
            yield (
                touch.value,
                place(examination.pipeline, request.step, asked, request.turn),
            )


def _image(
    examination: Examination, image: str, types: tuple[str, ...], request: Request, where: str
) -> Iterator[Finding]:
    if request.name != "CreateTrainingJob":  # Whose stage says so itself.
        yield from _driven(Use(image=image, instance_types=types), request, where)
    match = _REPOSITORY.fullmatch(image)
    if match is None:
        return
    region = examination.account.region
    if match["region"] != region:
        what = f"image {image} is in {match['region']}, and runs are in {region}"
        yield _RULE.broken(
            request.calls, where, what, f"replicate it to {region}, and name it there"
        )
        return
    yield from _pulled(examination, match, types, request, where)


def _pulled(
    examination: Examination,
    match: re.Match[str],
    types: tuple[str, ...],
    request: Request,
    where: str,
) -> Iterator[Finding]:
    tag = {"imageTag": match["tag"] or "latest"}
    which = {"imageDigest": match["digest"]} if match["digest"] else tag
    place = {"registryId": match["account"], "repositoryName": match["name"], "imageIds": [which]}
    found = manifest(examination.reader, place)
    if found is None:
        what = f"registry {match['account']} has no repository {match['name']}"
        mend = "create it and push the image, or mend its name"
        yield _RULE.broken(request.calls, where, what, mend)
    elif not found:
        [name] = which.values()
        what = f"repository {match['name']} has no image {name}"
        yield _RULE.broken(request.calls, where, what, "push it, or name one that is there")
    elif types:
        every = tuple(builds(examination.reader, place, found))
        yield from _fitting(examination, match[0], every, types, request, where)


def _fitting(
    examination: Examination,
    image: str,
    every: tuple[Build, ...],
    types: tuple[str, ...],
    request: Request,
    where: str,
) -> Iterator[Finding]:
    """Compare the builds of an image with the machines: their architecture and accelerators."""
    built = {each.architecture for each in every if each.architecture is not None}
    for name in types:
        needed = _architectures(examination, name) if built else set()
        if needed and needed.isdisjoint(built):
            yield _RULE.broken(
                request.calls,
                where,
                f"image {image} is built for {', '.join(sorted(built))}, and {name} is "
                f"{', '.join(sorted(needed))}",
                "build it for the architecture of the machines",
            )
            continue
        for each in every:
            if each.architecture is None or not needed or each.architecture in needed:
                use = Use(image=image, cuda=each.cuda, instance_types=(name,))
                yield from _driven(use, request, where)


def _driven(use: Use, request: Request, where: str) -> Iterator[Finding]:
    """Yield the accelerators that the software of an image can't drive."""
    for found in strategies.findings(NoStrategy(), use):
        what, _, mend = found.message.partition("; ")
        severity: Severity = "fails" if found.certain else "may fail"
        yield _RULE.broken(request.calls, where, what, mend, severity)


def _architectures(examination: Examination, name: str) -> set[str]:
    filters = [{"Name": "instance-type", "Values": [name.removeprefix("ml.")]}]
    every = examination.reader.every(
        "ec2", "DescribeInstanceTypes", "InstanceTypes", Filters=filters
    )
    return {
        _ARCHITECTURES[architecture]
        for each in every
        for architecture in each["ProcessorInfo"]["SupportedArchitectures"]
        if architecture in _ARCHITECTURES
    }
