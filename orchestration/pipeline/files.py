"""Pipelines in YAML files, and the lock files beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from orchestration.errors import PipelineError, Problem, near
from orchestration.pipeline import plans
from orchestration.pipeline.afterwards.sections import all_stages
from orchestration.pipeline.nesting.inlining import Whole, whole
from orchestration.pipeline.nesting.paths import without_machine
from orchestration.pipeline.unusable import of_path, unusable
from orchestration.pipeline.yaml import data_of
from orchestration.stages.packing import contents, digest

if TYPE_CHECKING:
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.answers.plans import Plans
    from orchestration.planning.search.asked.account import AccountLimits


class Read(NamedTuple):
    """A YAML file with the digests of its folders filled in."""

    document: Whole
    problems: list[Problem]
    origin: tuple[dict[str, Any], ...]
    """The data as the file has it, but for absolute paths, and the content of a lock file that
    makes the same of it."""


def read(path: Path, content: Mapping[str, Any] | None = None) -> Read:
    """Read a YAML file, and find what is wrong with the folders and plans that it names.

    A digest comes from the lock file where there is one, so that reading needs no folder; else from
    the folder itself. ``content`` is what the lock file will hold, where that is not written yet.
    """
    file = whole(path)
    data, defaults = file.data, file.defaults
    if wrong := unusable(data):
        raise PipelineError(defaults.placed(wrong))
    carried = without_machine(file.given, path.parent)
    unsaid = {code.key for code in _codes(data) if "sha256" not in code.source}
    _place_stand_ins(data, path.parent)
    locked = _lock(path) if content is None else _locked(content)
    pins = plans.of_moved(locked.plans, data, carried)
    found = plans.settle(data, path.parent, locked.plans)
    found += [problem for trial in _trials(data) for problem in trial.read(path.parent)]
    found += _fill(data, path.parent, locked.sources)
    known = {c.key: str(c.source.get("sha256")) for c in _codes(data) if c.key in unsaid}
    return Read(file, [*defaults.problems, *found], (carried, document(known, pins)))


def with_code(data: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return the data of a pipeline with the digests of its code as it is now.

    Raises :class:`PipelineError` with what is wrong with that code.
    """
    _place_stand_ins(data, directory)
    if problems := _fill(data, directory, {}):
        raise PipelineError(problems)
    return data


def _fill(data: Mapping[str, Any], directory: Path, digests: Mapping[str, str]) -> list[Problem]:
    problems = []
    for code in _codes(data):
        wrong = list(_filled(code, directory, digests))
        if wrong:
            # So that nothing else is said of it: there is a digest, whatever it is worth.
            code.source.setdefault("sha256", "0" * 64)
        problems += wrong
    return problems


def _place_stand_ins(data: Mapping[str, Any], directory: Path) -> None:
    """Make the folders of stand-ins absolute; they need not exist until a run starts."""
    for _, stage in all_stages(data):
        if not isinstance(stage, dict):
            continue
        for holder in (stage, stage.get("transform")):
            local = holder.get("local") if isinstance(holder, dict) else None
            if isinstance(local, dict) and isinstance(local.get("directory"), str):
                local["directory"] = str((directory / local["directory"]).resolve())


def _filled(code: _Code, directory: Path, digests: Mapping[str, str]) -> Iterator[Problem]:
    """Fill in the digest of code; yields what is wrong with its folder or archive."""
    source, given = code.source, code.source[code.place]
    if message := of_path(given):
        yield code.problem(code.place, message)
        return
    place = (directory / given).resolve()
    source[code.place] = str(place)
    if code.place == "directory" and place.is_file():
        yield code.problem("directory", f"{given} is a file; give the folder that holds it")
        return
    if place.exists():
        try:
            yield from _entry(code, given, contents(place, **_packing(source)))
        except PipelineError as error:
            yield from code.problems(code.place, error)
            return
    if "sha256" not in source:
        if code.key in digests:
            source["sha256"] = digests[code.key]
        elif place.exists():
            source["sha256"] = digest(place, **_packing(source))


@dataclass(frozen=True, slots=True)
class _Trial:
    """A trial of a deployment that names a file of cases."""

    stage: str
    trial: dict[str, Any]

    @property
    def given(self) -> str:
        return str(self.trial["cases"])

    def read(self, directory: Path) -> Iterator[Problem]:
        """Put the cases of the file in the place of its name; yields what is wrong with it."""
        given = self.given
        message = of_path(given)
        if not message:
            try:
                cases = data_of(directory / given)
            except PipelineError as error:
                message = "; ".join(f"{given}: {problem.message}" for problem in error.problems)
            else:
                if isinstance(cases, list):
                    self.trial["cases"] = cases
                    return
                message = f"{given}: expected a list of cases"
        # So that nothing else is said of them.
        self.trial["cases"] = [{"request": None}]
        yield Problem("update.trial.cases", message, stage=self.stage)


def _trials(data: Mapping[str, Any]) -> Iterator[_Trial]:
    """The trials of stages that name a file of cases."""
    for name, stage in all_stages(data):
        update = stage.get("update") if isinstance(stage, dict) else None
        trial = update.get("trial") if isinstance(update, dict) else None
        if isinstance(trial, dict) and isinstance(trial.get("cases"), str):
            yield _Trial(str(name), trial)


_PLACES: Final[tuple[Literal["directory", "archive"], ...]] = ("directory", "archive")


@dataclass(frozen=True, slots=True)
class _Code:
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

    def problem(self, inside: str, message: str) -> Problem:
        return Problem(inside, message, stage=self.stage).within(self.field)

    def problems(self, inside: str, error: PipelineError) -> Iterator[Problem]:
        for problem in error.problems:
            yield self.problem(inside, problem.message)


def _entry(code: _Code, directory: str, names: list[str]) -> Iterator[Problem]:
    entry_point = code.source["entry_point"]
    if isinstance(entry_point, str) and entry_point not in names:
        hint = near(entry_point, names)
        yield code.problem("entry_point", f"{directory} holds no {entry_point!r}{hint}")


def _packing(source: Mapping[str, Any]) -> Any:
    """Return how a folder is packed, as far as it is well written."""
    include = source.get("include", ())
    named = include if isinstance(include, list | tuple) else ()
    return {
        "runtime": source.get("runtime") is True,
        "include": [name for name in named if isinstance(name, str)],
    }


def lock_path(path: Path) -> Path:
    """Return the lock file of a pipeline file: ``digits.lock.json`` beside ``digits.yaml``."""
    return path.with_suffix(".lock.json")


def yaml_path(lock_file: Path) -> Path:
    """Return the path of the pipeline file to which a lock file belongs."""
    return lock_file.with_name(lock_file.name.removesuffix(".lock.json") + ".yaml")


def lock(path: Path) -> dict[str, Any]:
    """Build the lock file's content from the folders as they are now, and keep its plans."""
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    read = whole(path)
    for code in _codes(read.data):
        source, field = code.source, code.place
        if "sha256" in source:
            continue
        if message := of_path(source[field]):
            problems.append(code.problem(field, message))
            continue
        place = path.parent / source[field]
        if not place.exists():
            what = "folder" if field == "directory" else "file"
            problems.append(code.problem(field, f"there is no {what} {source[field]}"))
            continue
        try:
            digests[code.key] = digest(place, **_packing(source))
        except PipelineError as error:
            problems += code.problems(field, error)
    if problems:
        raise PipelineError(read.defaults.placed(problems))
    return document(digests, _lock(path).plans)


def document(digests: Mapping[str, str], pins: Mapping[str, plans.Pinned]) -> dict[str, Any]:
    """The content of a lock file."""
    content: dict[str, Any] = {"sources": dict(sorted(digests.items()))}
    return content | ({"plans": dict(sorted(pins.items()))} if pins else {})


def planned(
    path: Path,
    measurements: Sequence[Measurement] = (),
    limits: AccountLimits | None = None,
) -> tuple[dict[str, Plans], dict[str, Any]]:
    """Return the plans for a file's stages, and the lock file that pins the chosen ones."""
    found, pins = plans.pins(whole(path).data, path.parent, measurements, limits)
    # A first lock file pins the code, too; later ones leave that to `orchestrate lock`.
    digests = _lock(path).sources if lock_path(path).exists() else lock(path)["sources"]
    return found, document(digests, pins)


def stale(path: Path) -> list[str]:
    """The folders of code that changed since the lock file was written, by stage and field."""
    if not lock_path(path).exists():
        return []
    now, then = lock(path)["sources"], _lock(path).sources
    return sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))


@dataclass(frozen=True, slots=True)
class _Locked:
    sources: Mapping[str, str]
    """Digests of code, by stage and field."""
    plans: Mapping[str, plans.Pinned]
    """The planner's picks, by stage."""


def _lock(path: Path) -> _Locked:
    lock_file = lock_path(path)
    if not lock_file.exists():
        return _Locked({}, {})
    try:
        return _locked(json.loads(lock_file.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = (
            "is not a lock file; remove it, and write it again: "
            f"`orchestrate lock {path.name}`, or "
            f"`orchestrate plan {path.name} --update` where it held a plan"
        )
        raise PipelineError([Problem(lock_file.name, message)]) from error


def pinned(path: Path) -> Mapping[str, plans.Pinned]:
    """Return the plans that the lock file of a pipeline file pins, by stage; none without one."""
    return _lock(path).plans


def _locked(content: Mapping[str, Any]) -> _Locked:
    digests, pins = content["sources"], content.get("plans", {})
    readable = isinstance(digests, dict) and isinstance(pins, dict)
    if not readable or not all(map(plans.is_pinned, pins.values())):
        raise ValueError("not what a lock file holds")
    return _Locked(digests, pins)


def other_files(path: Path, content: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the files that a YAML file names, with a lock file's content.

    They are those of models, of nested pipelines and of cases.
    """
    document = whole(path)
    nested = {
        Path(os.path.relpath(file, path.parent.resolve())).as_posix(): plans.digest(file)
        for file in document.files
    }
    cases = {
        Path(trial.given).as_posix(): plans.digest(path.parent / trial.given)
        for trial in _trials(document.data)
    }
    return {
        **nested,
        **cases,
        **plans.model_files(document.data, path.parent, _locked(content).plans),
    }


def folders(path: Path) -> dict[str, dict[str, Any]]:
    """Return where the code of a YAML file's stages lies, how it is packed, and its digest.

    By stage and field; without a digest where it is not at hand.
    """
    found = {}
    for code in _codes(whole(path).data):
        name, packed = code.source[code.place], _packing(code.source)
        place = path.parent / name
        sha256 = digest(place, **packed) if place.exists() else None
        found[code.key] = {"path": name, **packed, "sha256": sha256}
    return found


def _codes(data: Mapping[str, Any]) -> Iterator[_Code]:
    """The fields of stages that name code on this machine."""
    for name, stage in all_stages(data):
        if isinstance(stage, dict):
            for field, value in _sources(stage):
                for place in _PLACES:
                    if isinstance(value.get(place), str):
                        yield _Code(str(name), field, value, place)


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
