"""Shapes of AWS requests and responses, from the service models that botocore ships.

Rules that AWS has only in words (:mod:`orchestration.checks.documented`) are added to them.

Only the data is botocore's: importing ``botocore.model`` loads urllib3, and its loader builds an
ordered dictionary of every object, which together was the better part of rendering a pipeline.
Models that somebody put into ``~/.aws/models`` are not read, so that a pipeline is as valid here as
anywhere else.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orchestration.checks import documented

_SERVICE = re.compile(r"[a-z0-9][a-z0-9.-]*")
_MODELS = "*/*/service-2.json*"


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The type of a value in a request or a response."""

    name: str
    metadata: Mapping[str, Any]
    """The model's own entries: ``type``, ``min``, ``max``, ``pattern``, ``enum``, …"""
    _model: ServiceModel

    @property
    def type_name(self) -> str:
        """The kind of the type: ``structure``, ``list``, ``map``, ``string``, ``integer``."""
        return str(self.metadata["type"])

    @property
    def required_members(self) -> tuple[str, ...]:
        """The members that a structure can't be without."""
        return tuple(self.metadata.get("required", ()))

    @property
    def is_tagged_union(self) -> bool:
        """True if the structure takes exactly one of its members."""
        return bool(self.metadata.get("union", False))

    @property
    def members(self) -> Mapping[str, Shape]:
        """The members of a structure, by name."""
        return self._model.members(self.name)

    @property
    def member(self) -> Shape:
        """The elements of a list."""
        return self._model.shape(self.metadata["member"])

    @property
    def key(self) -> Shape:
        """The keys of a map."""
        return self._model.shape(self.metadata["key"])

    @property
    def value(self) -> Shape:
        """The values of a map."""
        return self._model.shape(self.metadata["value"])


@dataclass(frozen=True, slots=True, eq=False)
class OperationModel:
    """One operation of a service."""

    input_shape: Shape | None
    output_shape: Shape | None
    errors: tuple[Shape, ...] = ()
    """The errors that it declares."""


@dataclass(frozen=True, slots=True, eq=False)
class ServiceModel:
    """The operations and shapes of a service; a shape is made when it is asked for."""

    operations: Mapping[str, Mapping[str, Any]]
    _shapes: Mapping[str, Mapping[str, Any]]
    _members: dict[str, Mapping[str, Shape]] = field(default_factory=dict)
    """By structure, as they were asked for."""

    def operation(self, name: str) -> OperationModel | None:
        """An operation, ``None`` where the service has no such."""
        if name not in self.operations:
            return None
        ends = (self.operations[name].get(end) for end in ("input", "output"))
        taken, given = (None if end is None else self.shape(end) for end in ends)
        errors = tuple(self.shape(error) for error in self.operations[name].get("errors", ()))
        return OperationModel(taken, given, errors)

    @property
    def errors(self) -> tuple[Shape, ...]:
        """The errors that the service declares, of all operations."""
        errors = (name for name, shape in self._shapes.items() if shape.get("exception"))
        return tuple(self.shape({"shape": name}) for name in errors)

    def shape(self, reference: Mapping[str, Any]) -> Shape:
        """The shape that a member, an operation or another shape refers to."""
        name = reference["shape"]
        # A reference may say more of the value than the shape does.
        return Shape(name, {**self._shapes[name], **reference}, self)

    def members(self, structure: str) -> Mapping[str, Shape]:
        """The members of a structure."""
        if structure not in self._members:
            references = self._shapes[structure].get("members", {})
            self._members[structure] = {n: self.shape(ref) for n, ref in references.items()}
        return self._members[structure]


def _data() -> Path | None:
    """Return the folder with botocore's models, if it is installed."""
    spec = find_spec("botocore")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0], "data") if places else None


def service_names() -> tuple[str, ...]:
    """The services that botocore ships a model of."""
    data = _data()
    return () if data is None else tuple(p.parent.parent.name for p in data.glob(_MODELS))


@cache
def service_model(name: str) -> ServiceModel | None:
    """The newest model of a service, ``None`` where botocore ships none of this name."""
    data = _data()
    if data is None or not _SERVICE.fullmatch(name):
        return None
    versions = sorted((data / name).glob("*/service-2.json*"))
    if not versions:
        return None
    newest = versions[-1]
    model = _read(newest)
    shapes: dict[str, Any] = model["shapes"]
    for extra in newest.parent.glob("service-2.sdk-extras.json*"):
        for shape, traits in _read(extra).get("merge", {}).get("shapes", {}).items():
            shapes[shape] = _merged(shapes.get(shape, {}), traits)
    for shape, traits in documented.SHAPES.get(name, {}).items():
        shapes[shape] = _merged(shapes[shape], traits)
    return ServiceModel(model["operations"], shapes)


def next_page(service: str, operation: str) -> str | None:
    """Return the field of a response that says that there are more pages; ``None``: there is none.

    Tokens that are more than one field are not known here.
    """
    data = _data()
    files = () if data is None else sorted((data / service).glob("*/paginators-1.json*"))
    known = _read(files[-1])["pagination"].get(operation, {}) if files else {}
    token = known.get("output_token")
    return token if isinstance(token, str) and token.isidentifier() else None


def _merged(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings in one, as botocore merges its corrections: the extra values count."""
    merged = dict(base)
    for key, value in extra.items():
        inner = merged.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(inner, value)
        else:
            merged[key] = value
    return merged


def _read(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    data: dict[str, Any] = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    return data
