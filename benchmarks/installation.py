"""Time installing each extra into a new environment, and tell the size of what it brings.

Each is installed twice: the first time fills pip's cache, the second is measured, so that the
network is left out. ``python benchmarks/installation.py [EXTRA ...]``.
"""

import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEVELOPERS = ("dev", "docs")
MIB = 2**20


def installed(wheel: Path, extra: str, folder: Path) -> tuple[float, int, int]:
    """Return the seconds, the bytes and the number of packages of an extra."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
    python = str(environment / "bin/python")
    library = next(environment.glob("lib/python3*/site-packages"))
    before = _size(library)
    asked = f"{wheel}[{extra}]" if extra else str(wheel)
    began = time.perf_counter()
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", asked],
        check=True,
    )
    seconds = time.perf_counter() - began
    packages = len(list(library.glob("*.dist-info"))) - 2  # pip and setuptools were there
    return seconds, _size(library) - before, packages


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = ["", *(each for each in project["optional-dependencies"] if each not in DEVELOPERS)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", made]
        subprocess.run([*command, str(ROOT)], check=True)
        (wheel,) = folder.glob("*.whl")
        for extra in sys.argv[1:] or known:
            installed(wheel, extra, folder)
            seconds, size, packages = installed(wheel, extra, folder)
            name = extra or "(none)"
            print(f"{name:10} {seconds:6.1f} s, {size / MIB:7.1f} MiB, {packages:4} packages")


if __name__ == "__main__":
    main()
