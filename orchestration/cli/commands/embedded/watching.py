"""``orchestrate run --watch``: run again whenever a file of the pipeline has changed."""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import typer

from orchestration.cli import run_file
from orchestration.cli.naming import Named, named
from orchestration.cli.output import note
from orchestration.errors import OrchestrationError

_EVERY_S: Final = 0.5
_MOST_NAMES: Final = 3

_Seen = Mapping[Path, tuple[int, int]]
"""Time of the last change and size, by file."""


def repeatedly(
    pipeline: str | None, once: Callable[[str, Path], None], *, written: Path | None = None
) -> None:
    """Run a pipeline, and again after each change of its files, until somebody interrupts it.

    ``once`` is given a run's name, the same for all, so that their requests are; and a folder for
    results of jobs, which do not run again unless something that they read has changed. ``written``
    is a file that the run writes, so that it tells nothing.
    """
    run_id = f"local-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S}"
    with tempfile.TemporaryDirectory(prefix="orchestrate-watch-") as folder:
        _repeated(pipeline, lambda: once(run_id, Path(folder)), Path(folder), written)


def _repeated(
    pipeline: str | None, once: Callable[[], None], cache: Path, written: Path | None
) -> None:
    which = named(pipeline or run_file.pipeline_here())
    if which.path is None:
        raise typer.BadParameter("watches the files of a YAML pipeline", param_hint="--watch")
    places = {which.path}
    while True:
        places |= set(_places(which, which.path))
        before = seen(places, written)
        try:
            once()
        except (OrchestrationError, typer.BadParameter) as error:
            note(f"error: {error}")
        except typer.Exit:
            pass  # The run has failed, and said why.
        _tell_used(cache)
        note(f"watching {len(before)} files; Ctrl-C ends")
        while (now := seen(places, written)) == before:
            time.sleep(_EVERY_S)
        changed = sorted(p.name for p in {*now, *before} if now.get(p) != before.get(p))
        more = f" and {len(changed) - _MOST_NAMES} more" if len(changed) > _MOST_NAMES else ""
        note(f"{', '.join(changed[:_MOST_NAMES])}{more} changed: running it again")


def _tell_used(cache: Path) -> None:
    """Say which jobs did not run."""
    from orchestration.local.sagemaker.jobs.caching import USED

    names = sorted(each.name for each in (cache / USED).glob("*"))
    if names:
        note(f"nothing that they read has changed, so these did not run again: {', '.join(names)}")
        shutil.rmtree(cache / USED)


def _places(which: Named, path: Path) -> Iterator[Path]:
    """Yield the files and folders that a run reads; of a file with mistakes, those it still has."""
    yield from path.parent.glob("*.y*ml")
    try:
        yield from run_file.beside(path).uploads.values()
        loaded = which.load_with_code_as_it_is()
    except (OrchestrationError, typer.BadParameter):
        return
    for stage in loaded.every_stage:
        for _, source in stage.sources():
            yield from map(Path, source.dependencies)
            place = source.directory or source.archive
            if place is not None:
                yield Path(place)


def _below(place: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder but for hidden ones and those that Python makes."""
    if place.is_file():
        yield place
        return
    # `Path.rglob` of Python 3.11 fails where a folder is removed meanwhile.
    for folder, folders, names in os.walk(place):
        folders[:] = filter(_is_shown, folders)
        files = (Path(folder, name) for name in names if _is_shown(name))
        yield from (file for file in files if file.is_file())


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"


def seen(places: set[Path], written: Path | None) -> _Seen:
    """Return how each file of some places is now, but for one that a run writes itself."""
    found = {}
    own = None if written is None else written.resolve()
    for file in {file for place in places for file in _below(place)}:
        if own is not None and file.name == own.name and file.resolve() == own:
            continue
        try:
            status = file.stat()
        except OSError:
            continue  # It was deleted in between.
        found[file] = (status.st_mtime_ns, status.st_size)
    return found
