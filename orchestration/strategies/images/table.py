"""The table of framework images, read on first use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

DEFAULT_SCOPE = "training"


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of the table."""

    sdks: tuple[str, ...]
    """Packages of the SageMaker Python SDK, with versions; if they differ, the last one counts."""
    date: str
    """The day it was made, ``YYYY-MM-DD``."""
    licence: str


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its identity, its tags and its registries."""

    framework: str
    scope: str
    version: str
    base: str | None
    """The framework that a Hugging Face image is built on: ``pytorch2.1.0``."""
    python: str | None
    """``py312``; ``None`` if there is no choice."""
    repository: str
    tags: Mapping[str, str | None]
    """Tag by processor or family of instances; ``""``: the tag for any; ``None``: refused."""
    accounts: Mapping[str, str]
    """Account of the registry, by region."""

    def uri(self, region: str, tag: str) -> str:
        """Return the registry path in a region that has an account."""
        host = f"{self.accounts[region]}.dkr.ecr.{region}.{suffixes()[region]}"
        return f"{host}/{self.repository}:{tag}" if tag else f"{host}/{self.repository}"


@cache
def _load() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("table.json").read_text(encoding="utf-8")
    )
    return content


@cache
def source() -> Source:
    """Return the SDKs that the table was made from, and the date."""
    content = _load()["source"]
    return Source(tuple(content["sdks"]), content["date"], content["licence"])


@cache
def suffixes() -> Mapping[str, str]:
    """Return the DNS suffix of every region in the table."""
    listed = _load()["suffixes"].items()
    return {region: suffix for suffix, regions in listed for region in regions.split()}


@cache
def _accounts(registry: int) -> Mapping[str, str]:
    listed = _load()["registries"][registry].items()
    return {region: account for account, regions in listed for region in regions.split()}


def frameworks() -> tuple[str, ...]:
    """List every framework and algorithm, sorted."""
    return tuple(_load()["frameworks"])


def scopes(framework: str) -> tuple[str, ...]:
    """List the scopes of a framework's images: ``training``, ``inference``, and others."""
    return tuple(_load()["frameworks"][framework])


def versions(framework: str, scope: str = DEFAULT_SCOPE) -> tuple[str, ...]:
    """List the versions of a framework, newest first; empty if there is no such image."""
    return tuple(by_version(framework, scope))


@cache
def by_version(framework: str, scope: str) -> Mapping[str, tuple[Image, ...]]:
    """Return the images of a framework for a scope, by their version, newest first."""
    listed = _load()["frameworks"].get(framework, {})
    found: dict[str, list[Image]] = {}
    for image in _scope_images(framework, scope) if scope in listed else ():
        found.setdefault(image.version, []).append(image)
    return {version: tuple(found[version]) for version in sorted(found, key=_age, reverse=True)}


def built_on(version: str, base: str | None = None) -> tuple[str, str] | None:
    """Return the framework and its version below a version of transformers; the newest of several.

    ``None``: the table does not know it, or it is there on several frameworks and no ``base`` (all
    or the beginning of ``pytorch2.5.1``) says which.

    >>> built_on("4.26.0"), built_on("4.17.0"), built_on("4.17.0", "pytorch")
    (('pytorch', '1.13.1'), None, ('pytorch', '1.10.2'))
    """
    known = by_version("huggingface", DEFAULT_SCOPE).get(version, ())
    bases = {image.base for image in known if image.base and image.base.startswith(base or "")}
    names = {each.rstrip("0123456789.") for each in bases}
    if len(names) != 1:
        return None
    [name] = names
    return name, max((each.removeprefix(name) for each in bases), key=_age)


def _age(version: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", version)], version


def images(framework: str | None = None, scope: str | None = None) -> Iterator[Image]:
    """List every image of the table, or those of one framework or scope."""
    for name, listed in _load()["frameworks"].items():
        if framework not in (None, name):
            continue
        for purpose in listed:
            if scope in (None, purpose):
                yield from _scope_images(name, purpose)


@cache
def _scope_images(framework: str, scope: str) -> tuple[Image, ...]:
    listed = _load()["frameworks"][framework]
    groups = listed[scope]
    if isinstance(groups, str):  # The same images as for another scope.
        groups = listed[groups]
    return tuple(
        _image(framework, scope, group, version, base, python)
        for group in groups
        for version in group["versions"]
        for base in group.get("bases", [""])
        for python in group.get("pythons", [""])
    )


def _image(
    framework: str, scope: str, group: dict[str, Any], version: str, base: str, python: str
) -> Image:
    # "4.36=4.36.0": users ask for the first half; the tag has the second.
    asked, _, shown = version.partition("=")
    asked_base, _, shown_base = base.partition("=")
    names = {
        "version": shown or asked,
        "base": (shown_base or asked_base).lstrip("abcdefghijklmnopqrstuvwxyz"),
        "python": python,
    }
    return Image(
        framework=framework,
        scope=scope,
        version=asked,
        base=asked_base or None,
        python=python or None,
        repository=group["repository"],
        tags={
            processor: None if tag is None else tag.format(**names)
            for processor, tag in group["tags"].items()
        },
        accounts=_accounts(group["registry"]),
    )
