"""The registry path of a framework's image, for an instance type in a region."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Never, TypeAlias

from orchestration.errors import PipelineError, Problem, near
from orchestration.strategies.images.table import (
    DEFAULT_SCOPE,
    Image,
    by_version,
    frameworks,
    scopes,
    suffixes,
)

Distribution: TypeAlias = Literal["smddp", "smp"]
"""A library of SageMaker with its own images: data parallel, model parallel (version 2)."""

_INSTANCE_TYPE = re.compile(r"ml\.([a-z0-9-]+)\.[a-z0-9-]+")
# m6g, c7gn, r8gd; not g5, nor p6e-gb200, which use the images of other GPUs.
_GRAVITON = re.compile(r"(?![gp])[a-z]+\d+g[a-z]*")
_GRAVITON_SCOPE = "inference_graviton"
_PROCESSORS = frozenset({"", "cpu", "gpu", "inf", "neuronx", "trn"})
_LISTED = 24


def uri(
    framework: str,
    version: str | None = None,
    *,
    region: str,
    python: str | None = None,
    instance_type: str | None = None,
    processor: str | None = None,
    scope: str | None = None,
    distribution: Distribution | None = None,
    base: str | None = None,
) -> str:
    """Return the registry path of a framework's image, like the SageMaker Python SDK.

    ``version`` may be short if AWS publishes a tag for it (``2.8``), and omitted if there is only
    one. ``python`` (``py312``) and ``base`` (``pytorch2.1.0``, the base of a Hugging Face image)
    are required if there are several. ``processor`` (``cpu``, ``gpu``, ``inf``, ``trn``) follows
    from ``instance_type``; give one of them if images differ by it. ``scope`` is ``training`` if
    the framework has that, else its only one.

    Trainium and Inferentia turn ``pytorch`` into ``pytorch-neuron`` and so on, Graviton selects the
    images for it, and ``distribution="smp"`` selects ``pytorch-smp``.

    >>> uri("pytorch", "2.8.0", region="us-west-2", instance_type="ml.g5.12xlarge")
    '763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.8.0-gpu-py312'

    Raises :class:`~orchestration.errors.PipelineError`, which lists the alternatives.
    """
    family = None if instance_type is None else _family(instance_type)
    _refuse(_unknown(framework, region, instance_type, processor, distribution))
    name = _variant(framework, family, distribution)
    purpose = _scope(name, scope, family)
    chosen = _version(name, purpose, version)
    chosen = _one("base", chosen, base, lambda image: image.base, name)
    chosen = _one("python", chosen, python, lambda image: image.python, name)
    image = chosen[0]
    tag = _tag(image, family, processor, smddp=distribution == "smddp")
    if region not in image.accounts:
        _wrong(
            "region",
            f"{_named(image)} is not in {region}; it is in {_listed(sorted(image.accounts))}",
        )
    return image.uri(region, tag)


def _wrong(path: str, message: str) -> Never:
    raise PipelineError([Problem(path, message)])


def _refuse(problems: Iterable[Problem]) -> None:
    listed = list(problems)
    if listed:
        raise PipelineError(listed)


def _unknown(
    framework: str,
    region: str,
    instance_type: str | None,
    processor: str | None,
    distribution: str | None,
) -> Iterable[Problem]:
    """Find the problems of each argument by itself."""
    if framework not in frameworks():
        yield Problem("framework", f"there is no {framework!r}{near(framework, frameworks())}")
    if region not in suffixes():
        yield Problem("region", f"there is no {region!r}{near(region, suffixes())}")
    if instance_type is not None and _family(instance_type) is None:
        yield Problem(
            "instance_type",
            f"{instance_type!r} is not a SageMaker instance type, such as ml.g5.xlarge",
        )
    if instance_type is not None and processor is not None:
        yield Problem("processor", f"follows from instance_type ({instance_type}); give one")
    if distribution not in (None, "smddp", "smp"):
        yield Problem("distribution", f"there is no {distribution!r}; there is smddp, smp")


def _family(instance_type: str) -> str | None:
    match = _INSTANCE_TYPE.fullmatch(instance_type)
    return None if match is None else match[1]


def _is_graviton(family: str | None) -> bool:
    return family is not None and _GRAVITON.fullmatch(family) is not None


def _variant(framework: str, family: str | None, distribution: str | None) -> str:
    """Return the framework whose images these machines need."""
    candidates = []
    if distribution == "smp":
        candidates = [f"{framework}-smp"]
    elif family is not None and family.startswith(("inf", "trn")):
        tools = ["neuron"] if family == "inf1" else ["neuronx", "neuron"]
        candidates = [f"{framework}-{tool}" for tool in tools]
    elif _is_graviton(family) and _GRAVITON_SCOPE not in scopes(framework):
        candidates = [f"{framework}-arm64"]
    name = next((name for name in candidates if name in frameworks()), framework)
    if distribution == "smp" and not name.endswith("-smp"):
        _wrong("distribution", f"there is no image of {framework} with smp; it is for pytorch")
    return name


def _scope(framework: str, scope: str | None, family: str | None) -> str:
    known = scopes(framework)
    if scope is None:
        scope = DEFAULT_SCOPE if DEFAULT_SCOPE in known or len(known) > 1 else known[0]
    if scope not in known:
        _wrong("scope", f"{framework} has no image for {scope!r}{near(scope, known)}")
    if scope == _GRAVITON_SCOPE and family is not None and not _is_graviton(family):
        _wrong("instance_type", f"{family} is not a Graviton type, which {scope} needs")
    if not _is_graviton(family) or framework.endswith("-arm64") or scope == _GRAVITON_SCOPE:
        return scope
    if scope == "inference" and _GRAVITON_SCOPE in known:
        return _GRAVITON_SCOPE
    offered = "; it has with scope='inference'" if _GRAVITON_SCOPE in known else ""
    _wrong(
        "instance_type",
        f"{framework} has no image for {scope} on Graviton ({family}){offered}",
    )


def _version(framework: str, scope: str, version: str | None) -> Sequence[Image]:
    known = by_version(framework, scope)
    if version is None and len(known) == 1:
        [version] = known
    if version is None:
        _wrong("version", f"is needed for {framework}; there is {_listed(known)}")
    if version not in known:
        _wrong(
            "version",
            f"{framework} has no {version!r} for {scope}{_suggested(version, known)}; for one "
            "that is not in the table, give the image's registry path itself",
        )
    return known[version]


def _one(
    path: str,
    chosen: Sequence[Image],
    asked: str | None,
    read: Callable[[Image], str | None],
    framework: str,
) -> Sequence[Image]:
    """Return the images with the requested value, or with the only value there is."""
    known = list(dict.fromkeys(value for image in chosen if (value := read(image)) is not None))
    named = f"{framework} {chosen[0].version}"
    if asked is None:
        # pytorch2.8 and pytorch2.8.0 are equal.
        full = [value for value in known if not any(o.startswith(f"{value}.") for o in known)]
        if len(full) > 1:
            _wrong(path, f"is needed for {named}; there is {_listed(known)}")
        return [image for image in chosen if not full or read(image) == full[0]]
    if not known:
        _wrong(path, f"{named} has only one; remove {asked!r}")
    if asked not in known:
        _wrong(path, f"{named} has no {asked!r}{_suggested(asked, known)}")
    return [image for image in chosen if read(image) == asked]


def _tag(image: Image, family: str | None, processor: str | None, *, smddp: bool) -> str:
    """Return the tag for a family of instances, for a processor, or the only one."""
    tags = image.tags
    if processor is not None:
        wanted = [processor]
    elif family is not None:
        wanted = [family, *_processors(family)]
    else:
        wanted = _general(image)
    if "" in tags and "trn" not in wanted:
        wanted = [""]
    elif smddp and "gpu" in wanted:
        wanted = ["p4d", *wanted]  # If p4d has its own images, they are the ones with SMDDP.
    tag = next((tags[key] for key in wanted if key in tags), None)
    if tag is None:
        _wrong(
            "instance_type" if processor is None else "processor",
            f"{_named(image)} has no image for {family or processor}; there is "
            f"{_listed([key or 'one for cpu and gpu' for key, tag in tags.items() if tag])}",
        )
    return tag


def _general(image: Image) -> list[str]:
    """Return the only processor of an image, ignoring families with their own images."""
    tags = image.tags
    general = [key for key in tags if key in _PROCESSORS or not tags.keys() & {*_processors(key)}]
    if len(general) > 1:
        _wrong(
            "instance_type",
            f"(or processor) is needed for {_named(image)}; there is {_listed(general)}",
        )
    return general


def _processors(family: str) -> tuple[str, ...]:
    """List the names that images for a family of instances may have."""
    if family.startswith("inf"):
        return ("inf",) if family == "inf1" else ("inf", "neuronx")
    if family.startswith("trn"):
        return ("trn", "neuronx")
    return ("gpu",) if family.startswith(("g", "p")) else ("cpu",)


def _named(image: Image) -> str:
    parts = (image.framework, image.version, image.base, image.python)
    return " ".join(part for part in parts if part is not None)


def _suggested(asked: str, known: Iterable[str]) -> str:
    names = list(known)
    suggestion = near(asked, names)
    if suggestion.endswith("?"):
        return f"{suggestion} There is {_listed(names)}"
    return f"; there is {_listed(names)}"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    rest = len(every) - _LISTED
    return ", ".join(every[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")
