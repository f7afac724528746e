"""Run a part of the tests on the other versions of Python that this machine has.

    python -m tools.python_versions [--all] [VERSION...]

Each version that `pyproject.toml` names and that is installed gets an environment of its own,
`.venv-python-VERSION`, with the core, the Airflow extra and the embedded AWS, kept until
`constraints.txt` or `pyproject.toml` change. There the package is imported, pipelines are read and
rendered, DAG files are parsed, and one is run directly on the embedded AWS. `--all` runs all tests
that need no training toolkit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tomllib

from tools import environments

ROOT = environments.ROOT
_EXTRAS = "airflow,aws,local,pictures"
_TOOLS = ("hypothesis", "jsonschema", "numpy", "pillow", "pytest", "pytest-timeout", "pytest-xdist")
_PART = (
    "tests/house/test_import.py::test_import_touches_no_network_file_or_environment",
    "tests/house/test_import.py::test_every_public_name_loads_nothing_heavy",
    "tests/test_composition.py",
    "tests/test_graph.py",
    "tests/test_refs.py",
    "tests/artifacts/test_artifacts.py::test_the_rendered_definition_is_fresh",
    "tests/artifacts/test_artifacts.py::test_the_lock_file_is_fresh",
    "tests/airflow/test_dags.py::test_a_dag_survives_serialization",
    "tests/airflow/test_dags.py::test_a_dag_file_names_its_pipeline_beside_it",
    "tests/direct/test_runs.py::test_a_run_returns_what_the_pipeline_shows",
)


def main() -> int:
    """Run the command; the status is 1 where tests fail."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    others = [each for each in supported() if each != running]
    parser = argparse.ArgumentParser(prog="python -m tools.python_versions")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=", ".join(others))
    parser.add_argument("--all", action="store_true", help="all tests, and not a part of them")
    options = parser.parse_args()
    if unknown := set(options.versions) - set(supported()):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected {', '.join(others)}")
    broken = []
    for version in options.versions or others:
        base = environments.interpreter(version)
        if base is None:
            print(f"python{version} is not installed here: nothing is tested on it", flush=True)
            continue
        began = time.monotonic()
        extras = f"{ROOT}[{_EXTRAS}{',dev' if options.all else ''}]"
        python = environments.made(
            f"python-{version}",
            base,
            environments.pinned(ROOT / "constraints.txt").values(),
            [[*_TOOLS, "--editable", extras]],
        )
        installed = time.monotonic()
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not thorough"]
        chosen = () if options.all else _PART
        if subprocess.run([*command, *chosen], cwd=ROOT, check=False).returncode != 0:
            broken.append(version)
        print(
            f"Python {version}: installed in {installed - began:.0f} s, "
            f"tested in {time.monotonic() - installed:.0f} s",
            flush=True,
        )
    if broken:
        print(f"tests failed on Python {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def supported() -> list[str]:
    """Return the versions of Python that the package says it works with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    last = (each.rpartition(" ")[2] for each in project["classifiers"])
    return [each for each in last if each.startswith("3.")]


if __name__ == "__main__":
    sys.exit(main())
