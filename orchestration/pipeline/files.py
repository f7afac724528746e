"""Pipelines in YAML files, and the lock files beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline import plans
from orchestration.pipeline.afterwards.sections import all_stages
from orchestration.pipeline.nesting.inlining import Whole, whole
from orchestration.pipeline.nesting.paths import without_machine
from orchestration.pipeline.pinning import lock_file
from orchestration.pipeline.pinning.code import digests_of, fill, of_data
from orchestration.pipeline.pinning.lock_file import Locked, changed, document, lock_path
from orchestration.pipeline.unusable import of_path, unusable
from orchestration.pipeline.yaml import data_of
from orchestration.stages.packing import digest

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
    unsaid = {code.key for code in of_data(data) if "sha256" not in code.source}
    _place_stand_ins(data, path.parent)
    locked = _lock(path) if content is None else lock_file.parsed(content)
    pins = plans.of_moved(locked.plans, data, carried)
    found = plans.settle(data, path.parent, locked.plans)
    found += [problem for trial in _trials(data) for problem in trial.read(path.parent)]
    found += fill(of_data(data), path.parent, locked.sources)
    known = {c.key: str(c.source.get("sha256")) for c in of_data(data) if c.key in unsaid}
    return Read(file, [*defaults.problems, *found], (carried, document(known, pins)))


def with_code(data: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return the data of a pipeline with the digests of its code as it is now.

    Raises :class:`PipelineError` with what is wrong with that code.
    """
    _place_stand_ins(data, directory)
    if problems := fill(of_data(data), directory, {}):
        raise PipelineError(problems)
    return data


def _place_stand_ins(data: Mapping[str, Any], directory: Path) -> None:
    """Make the folders of stand-ins absolute; they need not exist until a run starts."""
    for _, stage in all_stages(data):
        if not isinstance(stage, dict):
            continue
        for holder in (stage, stage.get("transform")):
            local = holder.get("local") if isinstance(holder, dict) else None
            if isinstance(local, dict) and isinstance(local.get("directory"), str):
                local["directory"] = str((directory / local["directory"]).resolve())


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


def lock(path: Path) -> dict[str, Any]:
    """Build the lock file's content from the folders as they are now, and keep its plans."""
    read = whole(path)
    digests, problems = digests_of(of_data(read.data), path.parent)
    if problems:
        raise PipelineError(read.defaults.placed(problems))
    return document(digests, _lock(path).plans)


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
    return changed(lock(path)["sources"], _lock(path).sources)


def _lock(path: Path) -> Locked:
    return lock_file.read(lock_path(path), path)


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
        **plans.model_files(document.data, path.parent, lock_file.parsed(content).plans),
    }


def folders(path: Path) -> dict[str, dict[str, Any]]:
    """Return where the code of a YAML file's stages lies, how it is packed, and its digest.

    By stage and field; without a digest where it is not at hand.
    """
    found = {}
    for code in of_data(whole(path).data):
        name = code.source[code.place]
        place = path.parent / name
        sha256 = digest(place, **code.packing(path.parent)) if place.exists() else None
        found[code.key] = {"path": name, **code.options, "sha256": sha256}
    return found
