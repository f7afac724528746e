"""The modules of `orchestration.runtime`, and copies of them in a folder of code.

Containers do not have this package. `source: {runtime: true}` adds the modules while packing;
`orchestrate vendor-runtime` copies them into the folder itself.
"""

from __future__ import annotations

import importlib
from pathlib import Path

FOLDER = "orchestration_runtime"
_RUNTIME = Path(__file__).parents[1] / "runtime"
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


def modules() -> dict[str, Path]:
    """The modules of the runtime, by file name."""
    return {path.name: path for path in sorted(_RUNTIME.glob("*.py"))}


def _files() -> dict[str, bytes]:
    version: str = importlib.import_module("orchestration").__version__
    header = f"{_MARK}{version}: change it there, not here.\n".encode()
    return {name: header + path.read_bytes() for name, path in modules().items()}


def _is_copy(path: Path) -> bool:
    return path.read_bytes().startswith(_MARK.encode())
