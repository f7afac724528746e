"""Code and plans of a pipeline in Python, pinned in ``NAME.lock.json`` beside its file.

The file is the one with the call of ``Pipeline``, and NAME the pipeline's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline import plans
from orchestration.pipeline.afterwards.sections import SECTIONS, STAGES, in_section
from orchestration.pipeline.pinning import code, lock_file
from orchestration.stages import Stage
from orchestration.stages.relative import calling_file
from orchestration.stages.values import Model, Source

if TYPE_CHECKING:
    from orchestration.pipeline.description import Description
    from orchestration.pipeline.plans import Pinned
    from orchestration.planning.search.answers.plans import Plans

Planner = Callable[[Mapping[str, Any], Path], "tuple[dict[str, Plans], dict[str, Pinned]]"]
"""Plan the stages of a pipeline's data in a folder: the answers, and what a lock file holds."""

_Data = dict[str, Any]
_M = TypeVar("_M", bound=Model)
_P = TypeVar("_P", bound="Description")


@dataclass(frozen=True, slots=True)
class Built:
    """A pipeline as a call of ``Pipeline`` builds it, with all that a lock file may pin of it."""

    name: str
    file: Path | None
    """The file with that call; ``None`` for a cell of a notebook, or a prompt."""
    given: tuple[tuple[str, str, Source], ...]
    """Stage, field and value of the code without a digest."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Its name, region, and the stages that ask for a plan."""
    answers: Mapping[str, Plans] = field(default_factory=dict)
    """Plans, where a command asked for them."""
    pins: Mapping[str, Pinned] = field(default_factory=dict)
    """The part of those that a lock file holds."""

    @property
    def folder(self) -> Path:
        """The folder that its paths and its lock file are in."""
        return Path.cwd() if self.file is None else self.file.parent

    @property
    def lock(self) -> Path:
        """Its lock file."""
        return self.folder / f"{self.name}.lock.json"

    def codes(self) -> list[code.Code]:
        """Return the code whose digest is pinned, or taken from what is there."""
        return [
            each
            for stage, path, source in self.given
            for each in code.of_source(stage, path, _plain(source))
        ]

    def locked(self) -> lock_file.Locked:
        """Return what its lock file pins."""
        return lock_file.read(self.lock, self.file or self.lock)

    def digests(self) -> Mapping[str, str]:
        """Return the pinned digests of its code."""
        return self.locked().sources if self.given and self._is_locked() else {}

    def stale(self) -> list[str]:
        """Return the code that changed since it was pinned, by stage and field.

        Raises :class:`PipelineError` where it is not at hand.
        """
        if not self._is_locked():
            return []
        return lock_file.changed(self._now(), self.locked().sources)

    def content(self, pins: Mapping[str, Pinned] | None = None) -> dict[str, Any]:
        """Return the content of its lock file: code as it is now, and the plans that it has.

        With other plans, the code is only pinned by the first lock file, as for YAML files.
        """
        if (yaml := lock_file.yaml_of(self.lock)) is not None:
            message = f"{self.lock.name} is the lock file of {yaml.name}; rename either pipeline"
            raise PipelineError([Problem(yaml.name, message)])
        kept = pins is not None and self.lock.exists()
        digests = self.locked().sources if kept else self._now()
        content = lock_file.document(digests, self.locked().plans if pins is None else pins)
        return content if self.file is None else {"python": self.file.name, **content}

    def _is_locked(self) -> bool:
        """Return whether a lock file pins its code.

        A cell of a notebook has none, since no command could write it. That of a YAML file of the
        same name is the YAML's, which may well be written from here; one that was written for this
        pipeline before the YAML file came is an error.
        """
        if self.file is None or not self.lock.exists():
            return False
        return self.locked().python is not None or lock_file.yaml_of(self.lock) is None

    def _now(self) -> dict[str, str]:
        digests, problems = code.digests_of(self.codes(), self.folder)
        if problems:
            raise PipelineError(problems)
        return digests


@dataclass(slots=True)
class _Building:
    planner: Planner | None
    built: list[Built]


_building: ContextVar[_Building | None] = ContextVar("building", default=None)


@contextmanager
def building(planner: Planner | None = None) -> Iterator[list[Built]]:
    """Collect the pipelines that are built meanwhile, as they come; plan them anew, or not."""
    now = _Building(planner, [])
    token = _building.set(now)
    try:
        yield now.built
    finally:
        _building.reset(token)


class Settled(NamedTuple):
    """The data of a pipeline with plans and digests in it."""

    data: _Data
    built: Built
    problems: list[Problem]
    """Mistakes in its code."""


def settled(data: _Data) -> Settled:
    """Put plans in the place of ``Auto`` and digests into code, pinned ones where there are any.

    A stage without a plan, or whose request has changed since, stays as it is and is refused later;
    so is code that is neither there nor pinned.
    """
    name = data.get("name")
    given: list[tuple[str, str, Source]] = []

    def noted(stage: str, path: str, source: Source) -> Source:
        if source.sha256 is None and source.uri is None:
            given.append((stage, path, source))
        return source

    _with_code(data, noted)
    # A longer name is refused later, and may be none that a file can have.
    name = name[:100] if isinstance(name, str) else ""
    built = Built(name, calling_file(), tuple(given))
    data = _planned(data, built)
    codes = built.codes()
    problems = code.fill(codes, built.folder, built.digests())
    return Settled(_filled(data, codes), built, problems)


def with_code_as_it_is(pipeline: _P, built: Built) -> _P:
    """Return a pipeline with its code as it is now, whatever its lock file says of that."""
    codes = built.codes()
    if problems := code.fill(codes, built.folder, {}):
        raise PipelineError(problems)
    sections = {section: getattr(pipeline, section) for section in SECTIONS}
    return pipeline.model_copy(update=_filled(sections, codes))


def _planned(data: _Data, built: Built) -> _Data:
    """Put plans in the place of ``Auto``, and note the pipeline where somebody collects them."""
    asking = {
        stage.name: stage
        for _, stage in in_section(data, STAGES)
        if isinstance(stage, Stage) and _asks(stage)
    }
    now = _building.get()
    written = {each: _written(stage) for each, stage in asking.items()}
    described = {"name": built.name, "region": data.get("region"), "stages": written}
    planner = None if now is None or not asking else now.planner
    if planner is not None:
        answers, pins = planner(described, built.folder)
        built = replace(built, data=described, answers=answers, pins=pins)
    if now is not None:
        now.built.append(built)
    if not asking:
        return data
    known = built.locked().plans if planner is None else built.pins
    if wrong := plans.settle(described, built.folder, known):
        raise PipelineError(wrong)
    planned = {
        each: type(asking[each]).model_validate({**fields, "name": each})
        for each, fields in written.items()
        if fields["strategy"]["kind"] != "auto"
    }
    return _with_stages(data, lambda stage: planned.get(stage.name, stage))


def _written(stage: Stage) -> _Data:
    """Return a stage as a file would hold it, with its request as it was asked."""
    from orchestration.pipeline.writing import stage_data

    asked = stage.strategy.model_dump(mode="json", exclude_unset=True)  # type: ignore[attr-defined]  # the stage asks for a plan
    return {**stage_data(stage), "strategy": {**asked, "kind": "auto"}}


def _asks(stage: Stage) -> bool:
    return getattr(getattr(stage, "strategy", None), "kind", None) == "auto"


def _plain(source: Source) -> _Data:
    """Return code as a file would hold it."""
    return source.model_dump(exclude_none=True)


def _filled(data: _Data, codes: Sequence[code.Code]) -> _Data:
    """Return a pipeline's data with the paths and digests of code that were filled in."""
    known = {(each.stage, each.field): each.source for each in codes}

    def filled(stage: str, path: str, source: Source) -> Source:
        found = known.get((stage, path))
        return source if found is None else source.model_copy(update=found)

    return _with_code(data, filled)


def _with_code(data: _Data, change: Callable[[str, str, Source], Source]) -> _Data:
    """Return a pipeline's data with its code changed, which is told with its stage and field."""
    return _with_stages(
        data, lambda stage: _changed(stage, "", lambda path, code: change(stage.name, path, code))
    )


def _with_stages(data: _Data, change: Callable[[Stage], Stage]) -> _Data:
    """Return a pipeline's data with each stage changed; what is none stays as it is."""

    def changed(value: object) -> object:
        return change(value) if isinstance(value, Stage) else value

    sections: _Data = {}
    for section in SECTIONS:
        stages = data.get(section)
        if isinstance(stages, Mapping):
            sections[section] = {name: changed(stage) for name, stage in stages.items()}
        elif isinstance(stages, list | tuple):
            sections[section] = tuple(changed(stage) for stage in stages)
    return {**data, **sections}


def _changed(model: _M, path: str, change: Callable[[str, Source], Source]) -> _M:
    """Return a model with its code changed, where files have code: see :func:`code.of_data`."""
    values: _Data = {}
    for name in type(model).model_fields:
        value, place = getattr(model, name), f"{path}{name}"
        if isinstance(value, Source):
            values[name] = change(place, value)
        elif isinstance(value, tuple):
            values[name] = tuple(
                _changed(item, f"{place}[{number}].", change) if isinstance(item, Model) else item
                for number, item in enumerate(value)
            )
        elif name == "transform" and isinstance(value, Model):
            values[name] = _changed(value, f"{place}.", change)
    known = {name: value for name, value in values.items() if value != getattr(model, name)}
    return model.model_copy(update=known) if known else model
