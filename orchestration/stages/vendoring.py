"""A copy of `orchestration.runtime` in a source folder, for containers without this package."""

from __future__ import annotations

import importlib
from importlib import resources
from pathlib import Path

FOLDER = "orchestration_runtime"
_MARK = "# Copied from orchestration.runtime "


def vendor(directory: Path) -> list[Path]:
    """Copy the runtime to `<directory>/orchestration_runtime/`, for scripts there to import.

    Each file is a line that names the version, then the bytes of the original. What an earlier
    version left there is refreshed, and removed where there is no such file any more. Returns the
    files, in order.

    Raises FileExistsError, and changes nothing, if the folder holds Python files that are not
    copies.
    """
    target = directory / FOLDER
    present = sorted(target.glob("*.py")) if target.is_dir() else []
    foreign = [path.name for path in present if not _is_copy(path)]
    if foreign:
        raise FileExistsError(
            f"{target} holds {', '.join(foreign)}, not copied from orchestration.runtime: "
            "move them elsewhere"
        )
    copies = {target / name: content for name, content in _files().items()}
    target.mkdir(parents=True, exist_ok=True)
    for path, content in copies.items():
        # A file that is the same already keeps its time, and a build what it made of it.
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    for path in present:
        if path not in copies:
            path.unlink()
    return sorted(copies)


def _files() -> dict[str, bytes]:
    version: str = importlib.import_module("orchestration").__version__
    header = f"{_MARK}{version}: change it there, not here.\n".encode()
    folder = resources.files("orchestration") / "runtime"
    return {
        entry.name: header + entry.read_bytes()
        for entry in folder.iterdir()
        if entry.name.endswith(".py")
    }


def _is_copy(path: Path) -> bool:
    return path.read_bytes().startswith(_MARK.encode())
