"""Check the types of the examples' code, the DAG files and the Python that the pages show.

    python -m tools.typed

Each example's code is packed alone, so that `from shared import texts` means another file in each.
Here they are packages beside each other, of which mypy reads all at once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.docs.blocks import modules

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "typed"
# What torch and Airflow leave without types; readers need no annotations to see what a page means.
_LENIENT = {
    "of_": "\n# mypy: disable-error-code="
    '"no-any-return,no-untyped-call,untyped-decorator,unused-ignore"\n',
    "pages": "\n# mypy: allow-untyped-defs\n",
}
_IMPORT = re.compile(r"^( *)(?:from (\w+) import|import (\w+)$)", re.MULTILINE)


def files() -> Iterator[tuple[str, str]]:
    """Yield each file as a place below the folder that is checked, and its text."""
    for folder in sorted({path.parent for path in (ROOT / "examples").rglob("*.py")}):
        package = "_".join(("of", *folder.relative_to(ROOT / "examples").parts))
        scripts = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.py"))}
        for name, text in scripts.items():
            placed = text.replace("from shared", f"from {package.rpartition('_')[0]}_shared")
            yield f"{package}/{name}.py", _beside(placed, package, scripts) + _LENIENT["of_"]
    for name, text in modules():
        yield f"pages/{name}.py", text + _LENIENT["pages"]
    # What `source: {runtime: true}` packs beside a script; what the tutorial's template has there.
    yield "orchestration_runtime.py", "from orchestration.runtime import *\n"
    yield "shared/table.py", "from of_retraining_shared.table import *\n"


def _beside(text: str, package: str, scripts: dict[str, str]) -> str:
    """Let a script import those beside it from their package; its lines stay where they are."""

    def imported(match: re.Match[str]) -> str:
        indentation, of, whole = match.groups()
        if of in scripts:
            return f"{indentation}from {package}.{of} import"
        if whole in scripts:
            return f"{indentation}from {package} import {whole}"
        return match[0]

    return _IMPORT.sub(imported, text)


def main() -> int:
    """Write the files, and return the status of mypy."""
    shutil.rmtree(PLACE, ignore_errors=True)
    for place, text in files():
        path = PLACE / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    dags = sorted((ROOT / "dags").glob("*.py"))
    command = [sys.executable, "-m", "mypy", *map(str, dags), str(PLACE)]
    search = {**os.environ, "MYPYPATH": str(PLACE)}
    return subprocess.run(command, cwd=ROOT, env=search, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
