"""`model.tar.gz` and `output.tar.gz`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from orchestration.local.account.protocol import ServiceError


def pack(directory: Path) -> bytes:
    """A directory's content as tar.gz."""
    buffer = io.BytesIO()
    # Jobs share this machine's two or so cores: fast beats small.
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(directory.iterdir()):
            archive.add(path, arcname=path.name)
    return buffer.getvalue()


def unpack(content: bytes, directory: Path) -> None:
    """Extract a tar.gz; raises `ServiceError` where it is none."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            archive.extractall(directory, filter="data")
    except tarfile.TarError as error:
        raise ServiceError("ValidationException", f"model data is no tar.gz: {error}") from error
