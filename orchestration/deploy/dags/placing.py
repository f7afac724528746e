"""Changes in a folder of DAGs: compared first, made in an order that can be cut off anywhere."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from orchestration.deploy.account import refusal
from orchestration.deploy.dags.stores import Store
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

    def apply(self, *, on_change: Callable[[FileChange], None] = lambda _: None) -> None:
        """Make the changes.

        The list comes first, with all names, so that what was cut off is still this pipeline's.
        """
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
    pipeline: str, files: Mapping[str, bytes], store: Store, *, adopt: bool = False
) -> Placement:
    """Compare a pipeline's files with those in a folder of DAGs; without files, all of them go.

    A file that is in the way and not this pipeline's is a
    :class:`~orchestration.errors.DeployError`, unless ``adopt`` takes it over.
    """
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
    )


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
