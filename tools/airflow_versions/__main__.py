"""Run the DAG tests on the versions of Airflow that platforms have.

    python -m tools.airflow_versions [--quick] [--examples] [--python 3.12] [PLATFORM...]

A platform is a file beside this one: the constraints by which it installs, and no others beside
those of this repository for what it does not name. Each has an environment of its own,
`.venv-airflow-PLATFORM`, kept until its constraints or `pyproject.toml` change. `--quick` runs the
tests that differ by version. `--examples` adds the `demo` extra, and trains, evaluates and serves
the examples (Python 3.11, gigabytes).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PLATFORMS = sorted(path.stem for path in HERE.glob("*.txt"))
_TOOLS = ("hypothesis", "jsonschema", "pytest", "pytest-timeout", "pytest-xdist")
_QUICK = ("test_dags.py", "test_triggers.py", "test_versions.py")
_EXAMPLES = ("tests/conformance/test_conformance.py", "-k", "digits or llm")


def main() -> int:
    """Run the command; the status is 1 where tests fail."""
    parser = argparse.ArgumentParser(prog="python -m tools.airflow_versions")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=", ".join(PLATFORMS))
    parser.add_argument("--quick", action="store_true", help="without the runs of whole DAGs")
    parser.add_argument("--examples", action="store_true", help="run the examples, too")
    parser.add_argument("--python", default="3.12", help="what Amazon MWAA has: 3.12")
    options = parser.parse_args()
    if unknown := set(options.platforms) - set(PLATFORMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected {', '.join(PLATFORMS)}")
    broken = []
    for platform in options.platforms or PLATFORMS:
        began = time.monotonic()
        extras = "airflow,local" + (",demo" if options.examples else "")
        python = environment(platform, options.python, extras)
        installed = time.monotonic()
        if tested(python, quick=options.quick, examples=options.examples) != 0:
            broken.append(platform)
        print(
            f"{platform} on {_said(python)}: installed in {installed - began:.0f} s, "
            f"tested in {time.monotonic() - installed:.0f} s",
            flush=True,
        )
    if broken:
        print(f"tests failed on {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def environment(platform: str, version: str, extras: str) -> Path:
    """Return the interpreter of a platform's environment, made or brought up to date."""
    directory = ROOT / f".venv-airflow-{platform}"
    python = directory / "bin" / "python"
    constraints = directory / "constraints.txt"
    text = constrained(HERE / f"{platform}.txt")
    wanted = "\n".join([str(ROOT), version, extras, text, (ROOT / "pyproject.toml").read_text()])
    marker = directory / ".installed"
    if marker.is_file() and marker.read_text() == wanted:
        return python
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([*_interpreter(version), "-m", "venv", "--without-pip", directory], check=True)
    (directory / ".gitignore").write_text("*\n")
    constraints.write_text(text)
    wheels = ["--constraint", str(constraints), "apache-airflow", *_TOOLS]
    for installer in _installers(python):
        if subprocess.run([*installer, *wheels, "--editable", f"{ROOT}[{extras}]"]).returncode == 0:
            break
    else:
        raise SystemExit(f"{platform} can't be installed")
    marker.write_text(wanted)
    return python


def _installers(python: Path) -> Iterator[list[str]]:
    """Yield the commands that install: uv in a tenth of pip's time, if it is there and may."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        # The certificates of the machine, as pip takes them.
        os.environ.setdefault("UV_SYSTEM_CERTS", "1")
        yield [uv, "pip", "install", "--quiet", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-compile"]
    yield [*pip, "--no-input", "--disable-pip-version-check"]


def constrained(platform: Path) -> str:
    """Return a platform's constraints, and ours for what it says nothing about."""
    theirs = _pins(platform)
    ours = _pins(ROOT / "constraints.txt")
    added = [pin for name, pin in ours.items() if name not in theirs and "airflow" not in name]
    return "\n".join([*theirs.values(), *added, ""])


def tested(python: Path, *, quick: bool, examples: bool) -> int:
    """Run the tests; returns pytest's status."""
    folder = Path("tests", "airflow")
    chosen = [folder / name for name in _QUICK] if quick else [folder]
    # anyio's plugin is as old as the platform's, and warns of the pytest that we test with.
    command = [python, "-m", "pytest", "-q", "-p", "no:anyio", "-p", "no:cacheprovider"]
    runs = [[*command, "-m", "not thorough", *chosen]]
    if examples:
        runs.append([*command, *_EXAMPLES])
    return max(subprocess.run(run, cwd=ROOT, check=False).returncode for run in runs)


def _pins(path: Path) -> dict[str, str]:
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    pins = (line for line in lines if line and not line.startswith("#"))
    return {re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower(): pin for pin in pins}


def _interpreter(version: str) -> Iterable[str]:
    """Return the command of a version of Python, or of this one where that is not installed."""
    # pyenv has a command for each version that it ever had, which runs the one that is chosen.
    os.environ["PYENV_VERSION"] = version
    found = shutil.which(f"python{version}")
    if found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
        return (found,)
    print(f"python{version} is not installed; going on with {sys.version_info[:2]}", flush=True)
    return (sys.executable,)


def _said(python: Path) -> str:
    done = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
