"""This machine's `/opt/ml`, watched while a job runs that could write there.

Where the system allows it, every host of a job has an `/opt/ml` of its own
(:mod:`orchestration.local.processes.opt_ml`). Elsewhere a script that names the path would write to
this machine's directory, and what it wrote would be missing from the job's output, so the job
fails.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestration.local.processes.opt_ml import OPT_ML, can_be_own

_MOST_ENTRIES = 10_000
_VARIABLES = {"model": "SM_MODEL_DIR", "output/data": "SM_OUTPUT_DATA_DIR"}
_CHANNELS = "input/data/"


def own(directory: Path) -> Path | None:
    """Return what a host sees as `/opt/ml`: its directory, or None for this machine's."""
    return directory if can_be_own() else None


@dataclass(frozen=True)
class Watch:
    """The state of this machine's `/opt/ml` at the start of a job.

    `has_toolkit`: the in-container toolkit sets the SM_* variables of the job's script.
    """

    root: Path
    has_toolkit: bool
    entries: Mapping[str, tuple[int, int]]

    @classmethod
    def begin(cls, *, has_toolkit: bool, root: Path = OPT_ML) -> Watch:
        """Start to watch."""
        return cls(root, has_toolkit, _entries(root))

    def change(self) -> str | None:
        """Return which path changed and what the script should use; None if nothing changed."""
        now = _entries(self.root)
        written = [name for name, state in now.items() if self.entries.get(name) != state]
        if max(len(now), len(self.entries)) >= _MOST_ENTRIES:
            # A new entry may only have moved into the part that is read; its directory tells.
            written = [name for name in written if name in self.entries]
        # The deepest entry tells more than the directories that it changed.
        name = max(written, key=lambda each: (each.count("/"), bool(each), each), default=None)
        if name is None:
            return None
        return (
            f"{self.root / name} of this machine changed while the job ran, and a job has no "
            f"{self.root} of its own here: its script should use {self._place(name)}. (Unless "
            f"another program or job wrote there.)"
        )

    def advice(self, failure: str) -> str:
        """Return what to add to a script's own message if it names a path below `/opt/ml`."""
        path = re.search(rf"{re.escape(str(self.root))}/([\w./-]+)", failure)
        if path is None:
            return ""
        place = self._place(path[1])
        return f" (A job has no {self.root} of its own here: its script should use {place}.)"

    def _place(self, name: str) -> str:
        """Return the expression with which a script finds its own place for an entry."""
        if self.has_toolkit:
            for folder, variable in _VARIABLES.items():
                if f"{name}/".startswith(f"{folder}/"):
                    return f'os.environ["{variable}"] instead of {self.root}/{folder}'
            if name.startswith(_CHANNELS):
                channel = name.removeprefix(_CHANNELS).split("/")[0]
                variable = f"SM_CHANNEL_{channel.upper()}"
                return f'os.environ["{variable}"] instead of {self.root}/{_CHANNELS}{channel}'
        return f'os.environ["SAGEMAKER_BASE_DIR"] instead of {self.root}'


def watch(*, has_toolkit: bool) -> Watch | None:
    """Start to watch; None where jobs cannot reach this machine's `/opt/ml`."""
    return None if can_be_own() else Watch.begin(has_toolkit=has_toolkit)


def _entries(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of a directory and of everything below it, by path."""
    return dict(itertools.islice(_walk(root), _MOST_ENTRIES))


def _walk(root: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    if root.is_dir():
        yield "", (root.stat().st_mtime_ns, 0)
    # Sorted, so that two bounded walks read the same part.
    for directory, folders, files in os.walk(root):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = os.path.join(directory, name)
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                yield os.path.relpath(path, root), (status.st_mtime_ns, status.st_size)
