"""Files and folders that are written completely or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any, Iterator

_PIECE_BYTES = 1 << 20


def files_below(folder: Path) -> list[str]:
    """List the files in a folder by their POSIX path in it, sorted."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def flush(path: Path) -> None:
    """Have the operating system write a file, or the names in a folder, to the disk."""
    descriptor = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_all(folder: Path) -> None:
    """Flush everything in a folder."""
    for path in (*folder.rglob("*"), folder):
        flush(path)


def write(path: Path, content: str) -> None:
    """Write a file and flush it."""
    with path.open("w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def create(path: Path, content: str) -> bool:
    """Create a file together with its content; return False if it exists already.

    The file system must support hard links.
    """
    with _beside(path, content) as temporary:
        try:
            os.link(str(temporary), str(path))
        except FileExistsError:
            return False
    return True


def replace(path: Path, content: str) -> None:
    """Replace a file's content; until the new content is complete, the old one stays."""
    with _beside(path, content) as temporary:
        os.replace(str(temporary), str(path))


def load(path: Path) -> Any:
    """Load a JSON file; return None if it is missing or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def sha256(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
            digest.update(piece)
    return digest.hexdigest()


def size(path: Path) -> int | None:
    """Return a file's size in bytes, or None."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


@contextlib.contextmanager
def _beside(path: Path, content: str) -> Iterator[Path]:
    temporary = path.with_name(f".tmp-{uuid.uuid4().hex}")
    try:
        write(temporary, content)
        yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
