"""References of a nested pipeline, as they are written in the pipeline around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from orchestration.errors import Problem, near
from orchestration.pipeline.description import Parameter
from orchestration.refs import parse

_ROLE: Final = "role"
"""A parameter that a pipeline has without declaring it."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """The names of a nested pipeline's stages and parameters in the pipeline around it.

    A parameter that is given as a reference is replaced by it. Any other becomes a parameter of the
    pipeline around, with the value as its default: conditions and checks then see a parameter, as
    the nested pipeline means it.
    """

    prefix: str
    stages: frozenset[str]
    declared: Mapping[str, Any]
    given: Any
    """The stage's ``parameters``."""

    def problems(self, file: str, around: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield parameters that are missing, unknown or of another type than those ``around``."""
        if self.given is not None and not isinstance(self.given, dict):
            yield Problem("parameters", f"expected a mapping, got {self.given!r:.60}")
            return
        for name in self._values:
            if name == _ROLE:
                yield Problem(f"parameters.{name}", "is that of the pipeline around; remove it")
            elif name not in self.declared:
                hint = near(str(name), self.declared)
                yield Problem(f"parameters.{name}", f"{file} has no such parameter{hint}")
            elif (wrong := self._mismatch(name, around)) is not None:
                yield Problem(f"parameters.{name}", wrong)
        for name, content in self.declared.items():
            has_default = isinstance(content, dict) and content.get("default") is not None
            if name not in self._values and not has_default and name != _ROLE:
                yield Problem(f"parameters.{name}", f"is missing; {file} needs a value for it")

    def _mismatch(self, name: str, around: Mapping[str, Any]) -> str | None:
        """Return why a value does not fit a parameter of the nested pipeline."""
        wanted, value = _type(self.declared[name]), self._values[name]
        match value:
            case {"parameter": str(other)} if other in around:
                given = _type(around[other])
                if given != wanted:
                    return f"expected {_a(wanted)}, got parameter {other}, which is {_a(given)}"
                return None
            case dict():
                return _unreadable(value)
            case None:
                return f"expected {_a(wanted)} or a reference, got nothing"
        # A type that there is not is reported with the parameter.
        if _is_parameter(type=wanted) and not _is_parameter(type=wanted, default=value):
            return f"expected {_a(wanted)}, got {value!r:.60}"
        return None

    def lifted(self) -> dict[str, Any]:
        """Return the parameters that the pipeline around gets."""
        lifted: dict[str, Any] = {}
        for name, content in self.declared.items():
            if name == _ROLE or isinstance(self._values.get(name), dict):
                continue
            own = dict(content) if isinstance(content, dict) else {}
            if name in self._values:
                own["default"] = self._values[name]
            lifted[self._named(name)] = own
        return lifted

    def stage(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return a stage as it is written in the pipeline around."""
        stage: dict[str, Any] = self._rewritten(content)
        after = content.get("after")
        if isinstance(after, list):
            stage["after"] = [self._named(str(name)) for name in after]
        loop = stage.get("for_each")
        if isinstance(loop, dict) and isinstance(loop.get("together"), str):
            stage["for_each"] = {**loop, "together": self._named(loop["together"])}
        return stage

    @property
    def _values(self) -> dict[str, Any]:
        return self.given if isinstance(self.given, dict) else {}

    def _named(self, name: str) -> str:
        return f"{self.prefix}_{name}"

    def _rewritten(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._rewritten(item) for item in value]
        if not isinstance(value, dict):
            return value
        match list(value.items()):
            case [("ref", str(text))]:
                # Unknown names too: they must not mean a stage of the pipeline around.
                return {"ref": self._named(text)}
            case [("parameter", str(name))]:
                return self._parameter(name)
        return {key: self._rewritten(item) for key, item in value.items()}

    def _parameter(self, name: str) -> Any:
        if name == _ROLE:
            return {"parameter": name}
        given = self._values.get(name)
        return deepcopy(given) if isinstance(given, dict) else {"parameter": self._named(name)}


def _unreadable(value: object) -> str | None:
    """Return why a mapping can't be read as a reference."""
    try:
        parse(value)
    except ValueError as error:
        return str(error)
    return None


def _a(kind: object) -> str:
    return f"an {kind}" if kind == "array" else f"a {kind}"


def _is_parameter(**fields: object) -> bool:
    try:
        Parameter.model_validate(fields)
    except ValidationError:
        return False
    return True


def _type(declared: Any) -> object:
    return declared.get("type", "string") if isinstance(declared, dict) else "string"
