"""Run the DAG tests on the versions of Airflow that platforms have.

    python -m tools.airflow_versions [--quick] [--examples] [--python 3.12] [PLATFORM...]

A platform is a file beside this one: the constraints by which it installs, and no others beside
those of this repository for what it does not name. Each has an environment of its own,
`.venv-airflow-PLATFORM`, kept until its constraints or `pyproject.toml` change. `--quick` runs the
tests that differ by version. `--examples` adds the `demo` extra (gigabytes), and trains, evaluates
and serves every example on that Airflow. On a platform that is refused, a DAG file has to say so.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tools import environments

ROOT = environments.ROOT
HERE = Path(__file__).parent
PLATFORMS = sorted(path.stem for path in HERE.glob("*.txt"))
_REFUSED = ("mwaa-3.0.6",)
_TOOLS = ("hypothesis", "jsonschema", "pytest", "pytest-timeout", "pytest-xdist")
_QUICK = ("test_dags.py", "test_runs.py", "test_triggers.py", "test_versions.py")
_EXAMPLES = ("tests/conformance/test_conformance.py", "tests/conformance/test_gallery.py")
_NAMES = "digits_trains or llm_trains or gallery"
_XGBOOST = "xgboost" if sys.platform == "darwin" else "xgboost-cpu"
_OF_EXAMPLES = ("scikit-learn", "transformers", _XGBOOST)
"""Imports of the examples' scripts, beside the `demo` extra."""


def main() -> int:
    """Run the command; the status is 1 where tests fail."""
    parser = argparse.ArgumentParser(prog="python -m tools.airflow_versions")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=", ".join(PLATFORMS))
    parser.add_argument("--quick", action="store_true", help="without most runs of whole DAGs")
    parser.add_argument("--examples", action="store_true", help="run the examples, too")
    parser.add_argument("--python", default="3.12", help="what Amazon MWAA has: 3.12")
    options = parser.parse_args()
    if unknown := set(options.platforms) - set(PLATFORMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected {', '.join(PLATFORMS)}")
    broken = []
    for platform in options.platforms or PLATFORMS:
        began = time.monotonic()
        python = environment(platform, options.python, examples=options.examples)
        installed = time.monotonic()
        refused = platform in _REFUSED
        if (refuses(python) if refused else tested(python, options.quick, options.examples)) != 0:
            broken.append(platform)
        print(
            f"{platform} on {_said(python)}: installed in {installed - began:.0f} s, "
            f"{'refused' if refused else 'tested'} in {time.monotonic() - installed:.0f} s",
            flush=True,
        )
    if broken:
        print(f"tests failed on {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def environment(platform: str, version: str, *, examples: bool) -> Path:
    """Return the interpreter of a platform's environment, made or brought up to date."""
    base = environments.interpreter(version)
    if base is None:
        print(f"python{version} is not installed; going on with {sys.version_info[:2]}", flush=True)
        base = Path(sys.executable)
    installs = _refused() if platform in _REFUSED else _supported(examples)
    pins = constrained(HERE / f"{platform}.txt")
    return environments.made(f"airflow-{platform}", base, pins, installs)


def _supported(examples: bool) -> list[list[str]]:
    """Return what is installed, in steps: the package and what its tests need."""
    extras, more = ("airflow,local,demo", _OF_EXAMPLES) if examples else ("airflow,local", ())
    return [["apache-airflow", *_TOOLS, *more, "--editable", f"{ROOT}[{extras}]"]]


def _refused() -> list[list[str]]:
    """Return the same of a platform on which nothing that reads our bounds installs the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [Requirement(each).name for each in project["dependencies"]]
    airflow = ["apache-airflow", "apache-airflow-providers-amazon[aiobotocore]"]
    return [[*airflow, *needs], ["--no-deps", "--editable", str(ROOT)]]


def constrained(platform: Path) -> list[str]:
    """Return a platform's constraints, and ours for what it says nothing about."""
    theirs = environments.pinned(platform)
    ours = environments.pinned(ROOT / "constraints.txt")
    # What examples import is pinned to what goes with our pins, and not with theirs.
    left = {*theirs, *_OF_EXAMPLES}
    added = [pin for name, pin in ours.items() if name not in left and "airflow" not in name]
    return [*theirs.values(), *added]


def tested(python: Path, quick: bool, examples: bool) -> int:
    """Run the tests; returns pytest's status."""
    folder = Path("tests", "airflow")
    chosen = [folder / name for name in _QUICK] if quick else [folder]
    # anyio's plugin is as old as the platform's, and warns of the pytest that we test with.
    command = [python, "-m", "pytest", "-q", "-p", "no:anyio", "-p", "no:cacheprovider"]
    runs = [[*command, "-m", "not thorough", *chosen]]
    if examples:
        runs.append([*command, *_EXAMPLES, "-k", _NAMES])
    # Each example once, where the other tests run it by every driver.
    environ = {**os.environ, "ORCHESTRATION_TEST_DRIVERS": "airflow"}
    return max(subprocess.run(run, cwd=ROOT, env=environ, check=False).returncode for run in runs)


def refuses(python: Path) -> int:
    """Read a DAG file on a platform that is refused; returns 0 where it says so."""
    command = [python, "dags/digits.py"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    *_, last = done.stderr.splitlines() or [""]
    print(last, flush=True)
    said = re.search(r"UnsupportedError: Airflow [\d.]+ is too old; install [\d.]+ or newer", last)
    return 0 if done.returncode == 1 and said else 1


def _said(python: Path) -> str:
    done = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
