"""Time `orchestrate render` as a process, with a fresh lock file and without, against others.

python benchmarks/processes.py [--sagemaker PYTHON] [--cdk CDK --cdk-python PYTHON] [--runs 7]

PYTHON has the SageMaker Python SDK V2 (`make test-sdk-v2` makes .venv-sdk-v2), or aws-cdk-lib; CDK
is the command of npm's aws-cdk. The programs take turns. CPU time of a process and of its children
counts, which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OTHERS = Path(__file__).with_name("others")


def cpu_s(command: list[str]) -> float:
    """Return the CPU seconds of a command, user and system."""
    # Bytecode is written once, as after an installation.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sagemaker", metavar="PYTHON")
    parser.add_argument("--cdk", metavar="CDK")
    parser.add_argument("--cdk-python", metavar="PYTHON", default="python3")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("dags", "examples"):
            shutil.copytree(ROOT / name, folder / name)
        (folder / "dags/digits.lock.json").rename(folder / "digits.lock.json")
        render = [sys.executable, "-m", "orchestration.cli", "render", "step-functions"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "orchestrate render, locked": [*render, str(ROOT / "dags/digits.yaml")],
            "orchestrate render, no lock file": [*render, str(folder / "dags/digits.yaml")],
            "orchestrate --help": [sys.executable, "-m", "orchestration.cli", "--help"],
        }
        if options.sagemaker:
            file = OTHERS / "sagemaker_pipelines.py"
            commands["SageMaker Pipelines definition()"] = [options.sagemaker, str(file)]
        if options.cdk:
            app = [options.cdk_python, str(OTHERS / "cdk_app.py")]
            commands["CDK app alone"] = app
            commands["cdk synth"] = [
                *(options.cdk, "synth", "--quiet", "--no-notices"),
                *("--app", " ".join(app), "--output", str(folder / "cdk.out")),
            ]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for run in range(options.runs + 1):
            for name, command in commands.items():
                seconds = cpu_s(command)
                if run:  # The first one warms caches up.
                    times[name].append(seconds)
    locked = times["orchestrate render, locked"]
    for name, measured in times.items():
        ratio = statistics.median(a / b for a, b in zip(measured, locked, strict=True))
        print(f"{name:34} {statistics.median(measured):6.2f} CPU s, {ratio:5.1f} x locked")


if __name__ == "__main__":
    main()
