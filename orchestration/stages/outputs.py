"""The outputs of a stage, each described in one place.

A stage declares a dataclass of references: name, type and docstring of each output, and through
:func:`output` which stages have it and whether a run shows it at its end. Lowering adds values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Generic, Literal, TypeVar, overload

from orchestration.errors import near
from orchestration.refs import Ref

O = TypeVar("O")  # noqa: E741 - a type variable for outputs

Condition = Callable[[Any], bool]
"""Something that holds for some stages of a kind."""


Kind = Literal["string", "number", "boolean", "list"]
_KINDS: Final[Mapping[str, Kind]] = {
    "str": "string",
    "float": "number",
    "int": "number",
    "bool": "boolean",
}


def _always(stage: object) -> bool:  # noqa: ARG001 - the shape of a condition
    return True


def _never(stage: object) -> bool:  # noqa: ARG001 - the shape of a condition
    return False


def _nothing(stage: object) -> object:  # noqa: ARG001 - the shape of a function of stages
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Description:
    exists: Condition = _always
    otherwise: str = ""
    shown: Condition = _never
    written: Condition = _never
    archive: Condition | None = None
    repeats: Callable[[Any], object] = _nothing
    unreadable: str = ""


_PLAIN = _Description()
_KEY = "output"


def output(
    *,
    exists: Condition = _always,
    otherwise: str = "",
    shown: Condition | bool = False,
    written: bool = False,
    archive: Condition | bool | None = None,
    repeats: Callable[[Any], object] = _nothing,
    unreadable: str = "",
) -> Any:
    """Describe an output of a stage, as the value of its dataclass field.

    ``exists`` says which stages have it, ``otherwise`` what to do about one that has not; ``shown``
    says whether (or for which stages) a run shows it at its end. ``written`` marks the S3 URI of
    data or a model that the stage writes; on Airflow it is an asset. ``archive`` says
    whether it is the S3 URI of a ``model.tar.gz`` or of a folder (``None``: not known), ``repeats``
    which reference of the stage it hands on. ``unreadable`` says why no stage can refer to it.
    """
    description = _Description(
        exists=exists,
        otherwise=otherwise,
        shown=_condition(shown),
        written=_condition(written),
        archive=None if archive is None else _condition(archive),
        repeats=repeats,
        unreadable=unreadable,
    )
    return field(metadata={_KEY: description})


def _condition(value: Condition | bool) -> Condition:
    return value if callable(value) else (_always if value else _never)


class Outputs(Generic[O]):
    """The outputs of a kind of stage; of a stage, the references to them."""

    named_by_stage = False
    """True if each stage of the kind names its own outputs."""

    def __init__(self, kind: type[O]) -> None:
        self._kind = kind
        self._described: Mapping[str, _Description] = {
            f.name: f.metadata.get(_KEY, _PLAIN)
            for f in fields(kind)  # type: ignore[arg-type]  # kind is a dataclass of Refs
        }
        self._types: Mapping[str, str] = {
            f.name: str(f.type)
            for f in fields(kind)  # type: ignore[arg-type]  # kind is a dataclass of Refs
        }

    @overload
    def __get__(self, stage: None, owner: type[object]) -> Outputs[O]: ...

    @overload
    def __get__(self, stage: Any, owner: type[object]) -> O: ...

    def __get__(self, stage: Any, owner: type[object]) -> Outputs[O] | O:
        if stage is None:
            return self
        return self._kind(**{name: Ref(stage.name, name) for name in self._described})

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs that stages of the kind can have."""
        return tuple(self._described)

    def of(self, stage: object) -> tuple[str, ...]:
        """The outputs that a stage has."""
        return tuple(name for name, output in self._described.items() if output.exists(stage))

    def shown(self, stage: object) -> tuple[str, ...]:
        """The outputs that a run shows at its end."""
        return tuple(name for name in self.of(stage) if self._described[name].shown(stage))

    def written(self, stage: object) -> tuple[str, ...]:
        """The outputs of a stage that are the S3 URIs of what it writes."""
        return tuple(name for name in self.of(stage) if self._described[name].written(stage))

    def kind_of(self, stage: object, name: str) -> Kind | None:  # noqa: ARG002 - the shape of all
        """Return the type of an output, as its reference is declared; ``None``: of no one type."""
        declared = self._types.get(name, "")
        return _KINDS.get(declared.rpartition("Ref[")[2].removesuffix("]"))

    def is_archive(self, stage: object, name: str) -> bool | None:
        """Return whether an output is the S3 URI of a ``model.tar.gz`` or of a folder."""
        archive = self._described[name].archive if name in self._described else None
        return None if archive is None else archive(stage)

    def repeated(self, stage: object, name: str) -> object:
        """Return the value of a stage's field that an output hands on, if it does."""
        return self._described[name].repeats(stage) if name in self._described else None

    def unreadable(self, name: str) -> str:
        """Return why no stage can refer to an output; empty: stages can."""
        return self._described[name].unreadable

    def otherwise(self, name: str) -> str:
        """Return the advice for a stage that lacks an output of its kind."""
        return self._described[name].otherwise


class NamedOutputs(Outputs[Any]):
    """Outputs that each stage of a kind names in one of its fields, a mapping by name."""

    named_by_stage = True

    def __init__(
        self, field: str, kind_of: Callable[[Any, str], Kind | None] | None = None
    ) -> None:
        self._field = field
        self._kind_of = kind_of
        self._described = {}

    def __get__(self, stage: Any, owner: type[object]) -> Any:
        return self if stage is None else _References(stage.name, self.of(stage))

    def of(self, stage: object) -> tuple[str, ...]:
        """The outputs that a stage has."""
        return tuple(getattr(stage, self._field))

    def kind_of(self, stage: object, name: str) -> Kind | None:
        """Return the type of an output, where the kind of stage says it."""
        known = self._kind_of is not None and name in self.of(stage)
        return self._kind_of(stage, name) if known and self._kind_of is not None else None

    def shown(self, stage: object) -> tuple[str, ...]:
        """The outputs that a run shows at its end: all of them."""
        return self.of(stage)

    def written(self, stage: object) -> tuple[str, ...]:  # noqa: ARG002 - the shape of its base
        """The outputs that are URIs of what the stage writes: nobody knows of any."""
        return ()

    def unreadable(self, name: str) -> str:  # noqa: ARG002 - the shape of its base
        """Return why no stage can refer to an output: all can be referred to."""
        return ""


@dataclass(frozen=True, slots=True)
class _References:
    stage: str
    names: tuple[str, ...]

    def __getattr__(self, name: str) -> Ref[Any]:
        if name not in self.names:
            message = f"stage {self.stage!r} has no output {name!r}{near(name, self.names)}"
            raise AttributeError(message)
        return Ref(self.stage, name)
