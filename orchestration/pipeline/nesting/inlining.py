"""A pipeline's file with the stages of the pipelines that it names in the place of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline.afterwards.sections import AFTER_END, SECTIONS, in_section
from orchestration.pipeline.defaults.merging import Merged, merged
from orchestration.pipeline.nesting.mistakes import to_pipelines, wrong_fields
from orchestration.pipeline.nesting.paths import with_paths
from orchestration.pipeline.nesting.renaming import Renaming
from orchestration.pipeline.yaml import load

_KIND: Final = "pipeline"
_LONGEST: Final = 30
"""Characters of a stage's name, as ``StageName`` has it."""

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Whole:
    """The data of a pipeline's file, its nested pipelines replaced by their stages."""

    data: Data
    defaults: Merged
    """The file's own data, its defaults in its stages."""
    given: Data
    """The file's own data as it is; where it names other files, that of all."""
    problems: tuple[Problem, ...] = ()
    files: tuple[Path, ...] = ()
    """The other files that it was read from."""


def whole(path: Path) -> Whole:
    """Read a pipeline's file, and those of the pipelines in it.

    Raises :class:`PipelineError` with all that is wrong with the latter; as long as it is not
    mended, nobody knows which stages there are.
    """
    read = _whole(path, ())
    if read.problems:
        raise PipelineError([*read.defaults.problems, *read.defaults.placed(read.problems)])
    return read


def _whole(path: Path, around: tuple[Path, ...]) -> Whole:
    """Read a file that others ``around`` it have named."""
    given = load(path)
    defaults = merged(given)
    data = defaults.data
    nested = [
        (section, str(name), stage)
        for section in SECTIONS
        for name, stage in in_section(data, section)
        if isinstance(stage, dict) and stage.get("kind") == _KIND
    ]
    if not nested:
        return Whole(data, defaults, deepcopy(given))
    inlining = _Inlining(path, (*around, path.resolve()), data, defaults)
    for section, name, stage in nested:
        inlining.add(section, name, stage)
    return inlining.whole()


@dataclass(slots=True)
class _Inlining:
    """One file, while the stages of others are put into it."""

    path: Path
    chain: tuple[Path, ...]
    """The files around it, and itself."""
    data: Data
    defaults: Merged
    problems: list[Problem] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    inside: dict[str, dict[str, Data]] = field(default_factory=dict)
    """The stages of each nested pipeline, by its own name and then by theirs."""

    def whole(self) -> Whole:
        """Return the file's data with all that was added."""
        self.problems += to_pipelines(self.data, self.inside)
        for section in SECTIONS:
            if section in self.data:
                self.data[section] = self._stages(section)
        given = deepcopy(self.data)
        return Whole(self.data, self.defaults, given, tuple(self.problems), tuple(self.files))

    def add(self, section: str, name: str, stage: Data) -> None:
        """Read the pipeline that a stage names."""
        self.inside[name] = {}
        wrong = list(wrong_fields(stage))
        if not wrong:
            inner = self._read(stage["file"], wrong)
            if inner is not None:
                wrong += self._added(name, stage, inner)
        self.problems += [replace(each, stage=name, section=section) for each in wrong]

    def _read(self, given: str, wrong: list[Problem]) -> Data | None:
        path = (self.path.parent / given).resolve()
        if path in self.chain:
            files = [file.name for file in (*self.chain[self.chain.index(path) :], path)]
            wrong.append(Problem("file", f"pipelines hold each other: {' -> '.join(files)}"))
            return None
        if not path.is_file():
            wrong.append(Problem("file", f"there is no file {given}"))
            return None
        try:
            inner = _whole(path, self.chain)
        except PipelineError as error:
            wrong += [_of_file(given, path, each) for each in error.problems]
            return None
        self.files += [path, *inner.files]
        mistakes = [*inner.defaults.problems, *inner.defaults.placed(inner.problems)]
        wrong += [_of_file(given, path, each) for each in mistakes]
        return None if mistakes else inner.data

    def _added(self, name: str, stage: Data, inner: Data) -> Iterator[Problem]:
        given = stage["file"]
        for section in AFTER_END:
            if inner.get(section):
                message = f"has {section}, which follows the end of a run; move it to this file"
                yield Problem("file", f"{given} {message}")
        region = inner.get("region")
        if region is not None and region != self.data.get("region"):
            other = self.data.get("region") or "no region of its own"
            yield Problem("file", f"{given} runs in {region}, and this pipeline in {other}")
        stages = {str(n): s for n, s in in_section(inner, "stages") if isinstance(s, dict)}
        if not stages:
            yield Problem("file", f"{given} has no stages")
        for other in stages:
            if len(f"{name}_{other}") > _LONGEST:
                message = f"its stage {other} would be {name}_{other}, and the most is {_LONGEST}"
                yield Problem("name", f"{message} characters; shorten one of the two names")
        renaming = Renaming(name, frozenset(stages), _declared(inner), stage.get("parameters"))
        yield from renaming.problems(given, _declared(self.data))
        self._declare(renaming.lifted(), given)
        folder = (self.path.parent / given).parent
        absolute = Path(given).is_absolute()
        moved = str(folder) if absolute else os.path.relpath(folder, self.path.parent)
        for other, content in stages.items():
            made = renaming.stage({key: v for key, v in content.items() if key != "name"})
            yield from _in_two_loops(stage, other, content, given)
            self.inside[name][f"{name}_{other}"] = _placed(_entered(made, stage, name), moved)

    def _declare(self, lifted: Mapping[str, Any], given: str) -> None:
        declared = self.data.setdefault("parameters", {})
        if not isinstance(declared, dict):
            return
        for parameter, content in lifted.items():
            if parameter in declared:
                message = f"is what a parameter of {given} is called here; rename it"
                self.problems.append(Problem(f"parameters.{parameter}", message))
            declared.setdefault(parameter, content)

    def _stages(self, section: str) -> Any:
        """Return the stages of a field, each nested pipeline replaced by its own."""
        made: dict[str, Any] = {}
        listed = isinstance(self.data[section], list)
        if not listed and not isinstance(self.data[section], dict):
            return self.data[section]
        for name, stage in in_section(self.data, section):
            inner = self.inside.get(str(name), {str(name): stage})
            self.problems += [
                Problem("", "2 stages have this name", stage=other, section=section)
                for other in inner
                if other in made
            ]
            made |= inner
        for stage in made.values():
            self._wait(stage)
        if not listed:
            return made
        return [
            {**stage, "name": name} if isinstance(stage, dict) else stage
            for name, stage in made.items()
        ]

    def _wait(self, stage: Any) -> None:
        """Wait for all stages of a nested pipeline where a stage waits for it."""
        after = stage.get("after") if isinstance(stage, dict) else None
        if isinstance(after, list):
            stage["after"] = [
                each for other in after for each in (self.inside.get(str(other)) or [other])
            ]


def _of_file(given: str, path: Path, problem: Problem) -> Problem:
    """Return a problem of another file, as one of the stage that names it."""
    own = problem.message if problem.path == str(path) else str(problem)
    return Problem("file", f"{given}: {own}")


def _declared(inner: Data) -> dict[str, Any]:
    declared = inner.get("parameters")
    return dict(declared) if isinstance(declared, dict) else {}


def _in_two_loops(around: Data, name: str, stage: Data, file: str) -> Iterator[Problem]:
    if around.get("for_each") is not None and stage.get("for_each") is not None:
        message = f"stage {name} of {file} goes through a list itself"
        yield Problem("for_each", f"{message}; a loop has no other one in it")


def _entered(stage: Data, around: Data, name: str) -> Data:
    """Return a stage with the fields of the stage ``name`` that stands for its pipeline."""
    entered = dict(stage)
    loop = around.get("for_each")
    if isinstance(loop, dict):
        entered["for_each"] = {**loop, "together": name}
    elif loop is not None:
        entered["for_each"] = loop  # It is told what is wrong with it as that of any stage.
    if isinstance(around.get("after"), list):
        own = entered.get("after")
        entered["after"] = [*around["after"], *(own if isinstance(own, list) else [])]
    if around.get("when") is not None:
        own = entered.get("when")
        entered["when"] = around["when"] if own is None else {"all": [around["when"], own]}
    return entered


def _placed(stage: Data, folder: str) -> Data:
    """Return a stage with paths relative to the file that it is put into."""
    return with_paths(stage, lambda path: os.path.normpath(Path(folder) / path))
