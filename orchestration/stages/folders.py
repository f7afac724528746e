"""The files of a folder of code: what is sent, what is left out, and what is refused.

Links are followed, to folders too. What would leave the machine by mistake (keys, links to places
outside of the folder) is refused unless it is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from orchestration.errors import Problem

MOST_FILES: Final = 10_000
"""A folder of code has hundreds; one of data or of a whole system is named by mistake."""
_MOST_PROBLEMS: Final = 10
"""A folder with more is the wrong one."""
_LEFT_OUT: Final = frozenset(
    ["__pycache__", ".git", ".DS_Store", ".ipynb_checkpoints", ".orchestration", ".venv"]
)
_LEFT_OUT_ENDS: Final = (".pyc", ".lock.json")
"""The lock file of a pipeline holds the digest of its code, which may lie around it."""
_SECRET_NAMES: Final = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
)
_SECRET_FOLDERS: Final = frozenset([".aws", ".ssh", ".gnupg", ".kube", ".docker"])
_HARMLESS: Final = (".env.example", ".env.sample", ".env.template")
_NAME_IT: Final = "move it elsewhere, or name it to send it all the same"


@dataclass(slots=True)
class Walk:
    """One pass through a folder."""

    root: Path
    include: frozenset[str]
    """POSIX paths, of files and folders, that are sent although they would be refused."""
    prefix: str = ""
    """The path of the folder in what is packed, with a slash, where it is a part of that."""
    problems: list[Problem] = field(default_factory=list)
    """The refusals of files, complete once :meth:`files` is through."""
    _count: int = 0
    """Files and folders so far."""

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield the files to send, by POSIX path in the folder."""
        root = self.root.resolve()
        yield from self._folder(root, "", (root,))

    def _folder(
        self, folder: Path, prefix: str, around: tuple[Path, ...]
    ) -> Iterator[tuple[str, Path]]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self._refuse(prefix.rstrip("/") or ".", f"can't be read: {error.strerror}")
            return
        for entry in entries:
            if entry.name in _LEFT_OUT or entry.name.endswith(_LEFT_OUT_ENDS):
                continue
            if self._count > MOST_FILES or len(self.problems) >= _MOST_PROBLEMS:
                return
            self._count += 1
            if self._count > MOST_FILES:
                self._refuse(".", f"holds more than {MOST_FILES} files; name the folder of code")
                return
            yield from self._entry(entry, f"{prefix}{entry.name}", around)

    def _entry(
        self, entry: os.DirEntry[str], name: str, around: tuple[Path, ...]
    ) -> Iterator[tuple[str, Path]]:
        path = Path(entry.path)
        if entry.is_symlink() and not self._may_follow(path, name, around):
            return
        if not self._is_named(name) and _is_secret(entry.name):
            self._refuse(name, f"looks like a secret; {_NAME_IT}: {self._include(name)}")
        elif path.is_dir():
            yield from self._folder(path, f"{name}/", (*around, path.resolve()))
        elif path.is_file():
            yield name, path
        else:
            self._refuse(name, "is neither a file nor a folder; delete it")

    def _may_follow(self, path: Path, name: str, around: tuple[Path, ...]) -> bool:
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # Python 3.11 and 3.12 raise the latter for a circle
            self._refuse(name, "is a link to something missing; delete it")
            return False
        if target in around:
            self._refuse(name, "is a link to a folder around it, which has no end; delete it")
            return False
        if not target.is_relative_to(around[0]) and not self._is_named(name):
            where = f"is a link to {target}, outside of the folder"
            self._refuse(name, f"{where}; {_NAME_IT}: {self._include(name)}")
            return False
        return True

    def _include(self, name: str) -> str:
        return f"include: [{self.prefix}{name}]"

    def _is_named(self, name: str) -> bool:
        parts = name.split("/")
        return any("/".join(parts[: count + 1]) in self.include for count in range(len(parts)))

    def _refuse(self, name: str, message: str) -> None:
        self.problems.append(Problem("", f"{self.root.name}/{name} {message}"))


def _is_secret(name: str) -> bool:
    if name in _HARMLESS:
        return False
    return name in _SECRET_FOLDERS or any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES)
