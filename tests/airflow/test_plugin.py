"""The plugin that loads the operators before Airflow's DAG processor forks."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START = """
import sys
import MODULE
from airflow.jobs.job import Job
Job()
loaded = [f"orchestration.airflow.{name}" in sys.modules for name in ("operators", "plugin")]
print(*loaded)
"""


def started(module: str, tmp_path: Path) -> str:
    """Start a job as a component of Airflow does; the package's entry points are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugins = project["entry-points"]["airflow.plugins"]
    metadata = tmp_path / "orchestration_of_this_test-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: orchestration-of-this-test\nVersion: 1\n")
    lines = [f"{name} = {value}" for name, value in plugins.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[airflow.plugins]", *lines, ""]))
    program = f"import sys; sys.path.append({str(tmp_path)!r})\n{START.replace('MODULE', module)}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_the_dag_processor_loads_the_operators(tmp_path: Path) -> None:
    assert started("airflow.cli.commands.dag_processor_command", tmp_path) == "True True"


@pytest.mark.slow
def test_other_components_load_no_operators(tmp_path: Path) -> None:
    assert started("airflow.cli.commands.scheduler_command", tmp_path) == "False True"
