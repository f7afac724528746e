"""Changes in a folder of DAGs: compared first, made in an order that can be cut off anywhere."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestration.deploy.account import refusal
from orchestration.deploy.dags.stores import Store
from orchestration.deploy.differences import renames
from orchestration.errors import DeployError

LIST: Final = "orchestration.json"
"""The list of a pipeline's files in its folder."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file to create, update or delete."""

    name: str
    """Its place in the folder of DAGs."""
    before: bytes | None
    after: bytes | None

    @property
    def kind(self) -> Literal["create", "update", "delete"]:
        """The kind of change."""
        if self.before is None:
            return "create"
        return "update" if self.after is not None else "delete"

    @property
    def summary(self) -> str:
        """Return one line: ``update digits/digits.yaml``."""
        return f"{self.kind} {self.name}"

    @property
    def difference(self) -> list[str]:
        """The lines that differ, of a file that is updated."""
        if self.before is None or self.after is None:
            return []
        before, after = (
            text.decode(errors="replace").splitlines() for text in (self.before, self.after)
        )
        return [line for line in difflib.unified_diff(before, after, n=1, lineterm="")][2:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A pipeline's files, compared with the files in a folder of DAGs."""

    pipeline: str
    store: Store
    changes: tuple[FileChange, ...]
    known: frozenset[str]
    """Names that the list has now."""
    wanted: tuple[str, ...]
    """Names that it will have."""
    former: Placement | None = None
    """The files under an earlier name, which are deleted once these are there."""

    @property
    def every_change(self) -> tuple[FileChange, ...]:
        """The changes, with those under an earlier name."""
        return self.changes if self.former is None else (*self.changes, *self.former.changes)

    def apply(self, *, on_change: Callable[[FileChange], None] = lambda _: None) -> None:
        """Make the changes.

        The list comes first, with all names, so that what was cut off is still this pipeline's.
        """
        self._apply(on_change)
        if self.former is not None:
            self.former.apply(on_change=on_change)

    def _apply(self, on_change: Callable[[FileChange], None]) -> None:
        if not self.changes and self.known == set(self.wanted):
            return
        self._put_list(sorted({*self.known, *self.wanted}))
        for change in self.changes:
            if change.after is None:
                self.store.delete(change.name)
            else:
                self.store.write(change.name, change.after)
            on_change(change)
        if self.wanted:
            self._put_list(sorted(self.wanted))
        else:
            self.store.delete(f"{self.pipeline}/{LIST}")

    def _put_list(self, names: list[str]) -> None:
        text = json.dumps({"pipeline": self.pipeline, "files": names}, indent=2) + "\n"
        self.store.write(f"{self.pipeline}/{LIST}", text.encode())


def placement(
    pipeline: str,
    files: Mapping[str, bytes],
    store: Store,
    *,
    adopt: bool = False,
    renamed_from: str | None = None,
) -> Placement:
    """Compare a pipeline's files with those in a folder of DAGs; without files, all of them go.

    A file that is in the way and not this pipeline's is a
    :class:`~orchestration.errors.DeployError`, unless ``adopt`` takes it over. ``renamed_from`` is
    the name under which the pipeline was placed before: all of that goes in the end, and another
    pipeline's is refused.
    """
    former = None if renamed_from is None else _former(pipeline, renamed_from, files, store)
    known = _listed(store, pipeline)
    wanted = {f"{pipeline}/{name}": content for name, content in files.items()}
    now = {name: store.read(name) for name in (*wanted, *sorted(known - wanted.keys()))}
    strangers = [
        f"{name} exists and is not this pipeline's: deploy with --adopt to overwrite it, or move it"
        for name, content in wanted.items()
        if name not in known and now[name] not in (None, content) and not adopt
    ]
    if strangers:
        raise refusal(f"pipeline {pipeline} can't be deployed to {store.place}", strangers)
    return Placement(
        pipeline=pipeline,
        store=store,
        changes=tuple(_changes(wanted, now)),
        known=known,
        wanted=tuple(wanted),
        former=former,
    )


def _former(pipeline: str, name: str, files: Mapping[str, bytes], store: Store) -> Placement:
    """Find the files under an earlier name; those of another pipeline are refused."""
    if name == pipeline:
        raise DeployError(renames.same(name))
    found = placement(name, {}, store)
    theirs = _pipelines((change.name, change.before) for change in found.changes)
    renames.refuse_another(name, list(_pipelines(files.items())), list(theirs))
    return found


def warnings(placed: Placement, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Tell the pipelines in a folder of DAGs that have the stages of one that comes anew.

    An earlier name under which nothing is placed is told, too.
    """
    former = placed.former
    unknown = () if former is None or former.known else (renames.nothing(former.pipeline),)
    if placed.known or (former is not None and former.known):
        return unknown
    own = list(_pipelines(files.items()))
    names = _folders(placed.store) if own else ()
    return unknown + tuple(
        renames.told(name)
        for name in names
        if any(
            renames.same_stages(each, other)
            for other in _placed(placed.store, name)
            for each in own
        )
    )


def _placed(store: Store, pipeline: str) -> Iterator[Mapping[str, Any]]:
    """Yield the pipelines among the files of one, until something can't be read."""
    try:
        names = _listed(store, pipeline)
        yield from _pipelines((name, store.read(name)) for name in sorted(names))
    except (DeployError, OSError):
        return


def _folders(store: Store) -> Sequence[str]:
    try:
        return store.folders()
    except OSError:
        return ()


def _pipelines(files: Iterable[tuple[str, bytes | None]]) -> Iterator[Mapping[str, Any]]:
    for name, content in files:
        if content is not None and name.endswith((".yaml", ".yml")):
            found = renames.read(content.decode(errors="replace"))
            if found is not None:
                yield found


def _listed(store: Store, pipeline: str) -> frozenset[str]:
    """Read the names of a pipeline's files, which lie in its folder and nowhere else."""
    content = store.read(f"{pipeline}/{LIST}")
    if content is None:
        return frozenset()
    try:
        listed = json.loads(content)
        owner, names = listed["pipeline"], [str(name) for name in listed["files"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DeployError(
            f"{store.place}/{pipeline}/{LIST} does not list files: {error}"
        ) from error
    strange = [
        name for name in names if not name.startswith(f"{pipeline}/") or ".." in name.split("/")
    ]
    if owner != pipeline or strange:
        raise DeployError(
            f"{store.place}/{pipeline}/{LIST} is not this pipeline's; move that folder away"
        )
    return frozenset(names)


def _changes(wanted: Mapping[str, bytes], now: Mapping[str, bytes | None]) -> Iterator[FileChange]:
    for name, content in wanted.items():
        if now[name] != content:
            yield FileChange(name, now[name], content)
    for name, before in now.items():
        if name not in wanted and before is not None:
            yield FileChange(name, before, None)
