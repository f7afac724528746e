"""Put the fields under ``defaults`` into the stages that they are for.

Data alone is looked at: which fields a stage takes is said when the stage is read, and a problem of
a field that came from here is told at its place here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestration.errors import Problem, near
from orchestration.expressions.conditions import parse_condition
from orchestration.pipeline.afterwards.sections import SECTIONS, in_section
from orchestration.refs import parse

DEFAULTS: Final = "defaults"
FOR: Final = "for"
OF_ONE: Final = ("name", "kind")
"""The fields that each stage gives itself."""
_Place = tuple[str, str]
"""A stage, and the path of a value in it."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A pipeline's data with its defaults in its stages."""

    data: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    """The mistakes in the defaults themselves."""
    origins: Mapping[_Place, str] = field(default_factory=dict)
    """The path in the file of each value that stands there."""

    def placed(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return problems at the places that the user wrote, those of several stages as one."""
        stages: dict[Problem, list[str]] = {}
        for problem in problems:
            origin = self._origin(problem)
            if origin is None:
                stages.setdefault(problem, [])
            else:
                stages.setdefault(Problem(origin, problem.message), []).append(str(problem.stage))
        return [
            replace(problem, message=f"{problem.message} (in {_stages(names)})")
            if names
            else problem
            for problem, names in stages.items()
        ]

    def _origin(self, problem: Problem) -> str | None:
        if problem.stage is None or problem.step is not None:
            return None
        path = problem.field
        while path:
            if (origin := self.origins.get((problem.stage, path))) is not None:
                return origin + problem.field[len(path) :]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return None


def merged(data: Mapping[str, Any]) -> Merged:
    """Return a pipeline's data with its defaults in its stages, where they lack them."""
    if DEFAULTS not in data:
        return Merged(dict(data))
    rest = _copied({key: value for key, value in data.items() if key != DEFAULTS})
    given = data[DEFAULTS]
    if not isinstance(given, list):
        text = f"expected a list of mappings with {FOR}, got {given!r:.60}"
        return Merged(rest, (Problem(DEFAULTS, text),))
    merging = _Merging(_by_name(rest))
    for index, entry in enumerate(given):
        merging.add(f"{DEFAULTS}[{index}]", entry)
    return Merged(rest, tuple(merging.problems), merging.origins)


def _copied(value: Any) -> Any:
    """Return plain data without parts in common, which aliases in YAML have."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _by_name(data: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): stage for section in SECTIONS for name, stage in in_section(data, section)}


@dataclass(slots=True)
class _Merging:
    """Stages while they are given what they lack."""

    stages: Mapping[str, Any]
    """All stages by name; mappings are changed."""
    problems: list[Problem] = field(default_factory=list)
    origins: dict[_Place, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """The paths of the defaults that a stage took, or had from another default."""

    def add(self, origin: str, entry: object) -> None:
        """Give the stages of one entry what they lack."""
        if not isinstance(entry, Mapping):
            text = f"expected a mapping with {FOR} and fields of stages, got {entry!r:.60}"
            self.problems.append(Problem(origin, text))
            return
        shared = {str(key): value for key, value in entry.items() if key != FOR}
        wrong = list(self._mistaken(entry.get(FOR), shared))
        self.problems += [problem.within(origin) for problem in wrong]
        if wrong:
            return
        for name in dict.fromkeys(entry[FOR]):
            if isinstance(self.stages[name], dict):
                self._give(self.stages[name], shared, name, "", origin)
        for path in _leaves(shared, ""):
            if f"{origin}.{path}" not in self.taken:
                text = "no stage takes it: each has its own; remove it"
                self.problems.append(Problem(f"{origin}.{path}", text))

    def _mistaken(self, names: object, shared: Mapping[str, Any]) -> Iterator[Problem]:
        if not isinstance(names, list) or not names:
            yield Problem(FOR, "expected a list of stages' names")
            names = []
        for name in names:
            if not isinstance(name, str):
                yield Problem(FOR, f"expected a stage's name, which is text, got {name!r:.60}")
            elif name not in self.stages:
                yield Problem(FOR, f"there is no stage {name!r}{near(name, self.stages)}")
        for key in OF_ONE:
            if key in shared:
                yield Problem(key, "each stage has its own; remove it")
        if not shared:
            yield Problem("", f"has no fields beside {FOR}")

    def _give(
        self, stage: dict[str, Any], shared: Mapping[str, Any], name: str, inside: str, origin: str
    ) -> None:
        for key, value in shared.items():
            path = f"{inside}.{key}" if inside else str(key)
            here = f"{origin}.{key}"
            own = stage.get(key)
            if key not in stage:
                self.origins[name, path] = here
                if _is_open(value):
                    stage[key] = {}
                    self._give(stage[key], value, name, path, here)
                else:
                    stage[key] = _copied(value)
                    self.taken.add(here)
            elif isinstance(own, dict) and _is_added_to(own, value):
                self._give(own, value, name, path, here)
            elif (name, path) in self.origins:
                self._refuse(here, value, f"stage {name} has it from {self.origins[name, path]}")
            elif _is_unclear(own, value):
                text = (
                    f"stage {name} has {own!r:.60} for it, and only one of the two reads as a "
                    "reference or a condition, to which no keys are added; leave the stage out of "
                    f"{FOR} and write all of the value there"
                )
                self._refuse(here, value, text)

    def _refuse(self, here: str, value: object, text: str) -> None:
        self.taken |= {here, *(f"{here}.{leaf}" for leaf in _leaves(value, ""))}
        self.problems.append(Problem(here, text))


def _is_open(value: object) -> bool:
    """Return whether a value is a mapping whose keys are looked at one by one."""
    return isinstance(value, dict) and bool(value) and not _is_one(value)


def _is_one(value: Mapping[str, Any]) -> bool:
    """Return whether a mapping reads as a reference or a condition, which are values as a whole."""
    for read in (parse, parse_condition):
        try:
            read(value)
        except ValueError:
            continue
        return True
    return False


def _is_added_to(own: Mapping[str, Any], shared: Any) -> bool:
    """Return whether a stage's own mapping is given the keys of a shared one."""
    if not _is_open(shared) or _is_one(own):
        return False
    # Another kind of a channel, say, has other fields.
    return "kind" not in own or own["kind"] == shared.get("kind", own["kind"])


def _is_unclear(own: object, shared: object) -> bool:
    """Return whether one of two mappings reads as a reference, and the other as no such value.

    A tag that is named `run`, say, has the form of a reference if its value is `id`. A mapping with
    its kind is no mapping of names that users choose, so there a stage's own value wins.
    """
    if not isinstance(own, dict) or not isinstance(shared, dict):
        return False
    return "kind" not in {*own, *shared} and _is_one(own) != _is_one(shared)


def _leaves(value: object, path: str) -> Iterator[str]:
    """Yield the paths of the values that are taken as they are."""
    if isinstance(value, dict) and (not path or _is_open(value)):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif path:
        yield path


def _stages(names: list[str]) -> str:
    *others, last = dict.fromkeys(names)
    return f"stages {', '.join(others)} and {last}" if others else f"stage {last}"
