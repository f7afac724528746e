"""Time the way from a clone to a model of one's own: an environment, the tutorial's commands.

``python -m benchmarks.tutorial``. pip's cache is filled before, so that the network is left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.tutorial import Performed, followed

ROOT = Path(__file__).parents[1]
INSTALLED = ("[demo,local]", "scikit-learn")


def installed(environment: Path) -> list[Performed]:
    """Make an environment with the package of this clone, as the tutorial's first lines say."""
    extras, *others = INSTALLED
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [
            *(f"{environment}/bin/pip", "install", "--quiet", "--disable-pip-version-check"),
            *(f"{ROOT}{extras}", *others),
        ],
    )
    performed = []
    for command in commands:
        began = time.monotonic()
        subprocess.run(command, check=True)
        performed.append(Performed(" ".join(command), time.monotonic() - began))
    return performed


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        environment, folder = Path(made, "environment"), Path(made, "folder")
        folder.mkdir()
        installed(environment)
        ways = {
            "installation": installed(environment),
            "the tutorial": list(followed(folder, environment / "bin")),
        }
    for performed in ways.values():
        for command, seconds in performed:
            print(f"{seconds:6.1f} s  {command.replace(made, '…').replace(str(ROOT), '.')}")
    for name, performed in ways.items():
        minutes = sum(each.seconds for each in performed) / 60
        print(f"{name}: {len(performed)} commands, {minutes:.1f} minutes")


if __name__ == "__main__":
    main()
