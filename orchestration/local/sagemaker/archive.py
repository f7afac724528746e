"""`model.tar.gz` and `output.tar.gz`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from orchestration.local.account.protocol import ServiceError


def pack(directory: Path) -> bytes:
    """Pack the content of a directory as tar.gz."""
    buffer = io.BytesIO()
    # Jobs share a few cores: speed matters more than size.
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(directory.iterdir()):
            archive.add(path, arcname=path.name)
    return buffer.getvalue()


def unpack(content: bytes, directory: Path) -> None:
    """Extract a tar.gz; raise `ServiceError` if the content is not one."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            archive.extractall(directory, filter="data")
    except tarfile.TarError as error:
        raise ServiceError(
            "ValidationException", f"expected model data as tar.gz: {error}"
        ) from error
