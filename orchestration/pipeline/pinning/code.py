"""Code on this machine that stages name, and its digests: pinned ones, or of what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline.afterwards.sections import all_stages
from orchestration.pipeline.unusable import of_path
from orchestration.stages.packing import absent, contents, digest
from orchestration.stages.relative import absolute

PLACES: Final[tuple[Literal["directory", "archive"], ...]] = ("directory", "archive")
"""The keys of code that hold a path."""
_UNKNOWN: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Code:
    """A field of a stage that names code on this machine."""

    stage: str
    field: str
    source: dict[str, Any]
    place: Literal["directory", "archive"]
    """The key of ``source`` that holds the path."""

    @property
    def key(self) -> str:
        """Its name in the lock file."""
        return f"{self.stage}.{self.field}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of packing it, as far as they are well written."""
        return {
            "runtime": self.source.get("runtime") is True,
            "include": [name for name in self._listed("include") if isinstance(name, str)],
            "dependencies": self._listed("dependencies") if self.has_paths else [],
        }

    @property
    def has_paths(self) -> bool:
        """Return whether its dependencies are texts; reading its stage tells of those that aren't.

        Without one of them the code would be other code.
        """
        return all(isinstance(each, str) for each in self._listed("dependencies"))

    def packing(self, directory: Path) -> Any:
        """Options of packing it, with paths that are relative to a directory."""
        options = self.options
        further = [str(absolute(directory / each)) for each in options["dependencies"]]
        return {**options, "dependencies": further}

    def unusable(self) -> Iterator[Problem]:
        """Yield the problems of paths that are none on any machine."""
        named = {
            f"dependencies[{at}]": path for at, path in enumerate(self._listed("dependencies"))
        }
        for inside, path in {self.place: self.source[self.place], **named}.items():
            if isinstance(path, str) and (message := of_path(path)):
                yield self.problem(inside, message)

    def _listed(self, key: str) -> list[Any]:
        given = self.source.get(key, ())
        return list(given) if isinstance(given, list | tuple) else []

    def problem(self, inside: str, message: str) -> Problem:
        """Return a problem of one of its keys."""
        return Problem(inside, message, stage=self.stage).within(self.field)

    def problems(self, inside: str, error: PipelineError) -> Iterator[Problem]:
        """Yield the problems of an error as those of one of its keys: by default ``inside``."""
        for problem in error.problems:
            yield self.problem(problem.field or inside, problem.message)


def of_data(data: Mapping[str, Any]) -> Iterator[Code]:
    """Yield the code of a pipeline's data, as a YAML file holds it."""
    for name, stage in all_stages(data):
        if isinstance(stage, dict):
            for field, value in _sources(stage):
                yield from of_source(str(name), field, value)


def of_source(stage: str, field: str, source: dict[str, Any]) -> Iterator[Code]:
    """Yield the code that a field of a stage names; none of code that lies in S3 only."""
    for place in PLACES:
        if isinstance(source.get(place), str):
            yield Code(stage, field, source, place)


def _sources(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields that hold code, also of the objects in lists, and of a transform."""
    for field, value in data.items():
        if isinstance(value, dict) and "entry_point" in value:
            yield str(field), value
        listed = enumerate(value if isinstance(value, list) else ())
        parts = [(f"{field}[{number}]", item) for number, item in listed]
        for path, part in [*parts, *([(field, value)] if field == "transform" else [])]:
            if isinstance(part, dict):
                for inside, source in _sources(part):
                    yield f"{path}.{inside}", source


def fill(codes: Iterable[Code], directory: Path, digests: Mapping[str, str]) -> list[Problem]:
    """Fill in the digests of code that lies relative to a directory; returns what is wrong with it.

    A digest is one of ``digests`` where that has it, so that no folder is needed; else that of the
    folder.
    """
    problems = []
    for code in codes:
        wrong = list(_filled(code, directory, digests))
        if wrong:
            # So that nothing else is said of it: there is a digest, whatever it is worth.
            code.source.setdefault("sha256", _UNKNOWN)
        problems += wrong
    return problems


def _filled(code: Code, directory: Path, digests: Mapping[str, str]) -> Iterator[Problem]:
    """Fill in the digest of code; yields what is wrong with its folder or archive."""
    source, given = code.source, code.source[code.place]
    if wrong := list(code.unusable()):
        yield from wrong
        return
    place = (directory / given).resolve()
    source[code.place] = str(place)
    if code.key in digests:
        source.setdefault("sha256", digests[code.key])
    if code.place == "directory" and place.is_file():
        yield code.problem("directory", f"{given} is a file; give the folder that holds it")
        return
    if not code.has_paths:
        if place.exists():
            source.setdefault("sha256", _UNKNOWN)
        return
    packing = code.packing(directory)
    if packing["dependencies"]:
        source["dependencies"] = tuple(packing["dependencies"])
    if not place.exists():
        return
    try:
        yield from _entry(code, given, contents(place, **packing))
    except PipelineError as error:
        yield from code.problems(code.place, error)
        return
    if "sha256" not in source:
        source["sha256"] = digest(place, **packing)


def _entry(code: Code, directory: str, names: list[str]) -> Iterator[Problem]:
    entry_point = code.source["entry_point"]
    if isinstance(entry_point, str) and (hint := absent(entry_point, names)) is not None:
        yield code.problem("entry_point", f"{directory} holds no {entry_point!r}{hint}")


def digests_of(codes: Iterable[Code], directory: Path) -> tuple[dict[str, str], list[Problem]]:
    """Return the digests of code as it is now, and what is wrong with it.

    Code that has its digest written down is left out, and so is what can't be read.
    """
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for code in codes:
        source, field = code.source, code.place
        if "sha256" in source or not code.has_paths:
            continue
        if wrong := list(code.unusable()):
            problems += wrong
            continue
        place = directory / source[field]
        if not place.exists():
            what = "folder" if field == "directory" else "file"
            problems.append(code.problem(field, f"there is no {what} {source[field]}"))
            continue
        try:
            digests[code.key] = digest(place, **code.packing(directory))
        except PipelineError as error:
            problems += code.problems(field, error)
    return digests, problems
