"""The home of a local Airflow: its settings, and the DAG files that it is given."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.graph import Workflow
    from orchestration.pipeline import Pipeline

_SETTINGS: Mapping[str, str] = {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # The default, 30 s, is too short on a busy machine.
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "3600",
    "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
    "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "SCARF_ANALYTICS": "false",
}


def variables_in(home: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an Airflow whose home this is."""
    # Leave out the settings, connections and secrets backends of a user's own Airflow.
    kept = {key: value for key, value in base.items() if not key.startswith("AIRFLOW")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [root, kept.get("PYTHONPATH")]))
    return kept | {
        **_SETTINGS,
        "PYTHONPATH": path,
        "AIRFLOW_HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
    }


def dag_file(dag: Pipeline | Workflow | Path, home: Path) -> Path:
    """Return the file of a DAG, written into the home if it is not a file yet."""
    if isinstance(dag, Path):
        return dag.resolve()
    from orchestration.graph import Workflow as WorkflowClass

    workflow = dag if isinstance(dag, WorkflowClass) else dag.lower()
    path = Path(tempfile.mkdtemp(dir=home / "dags")) / "dag.py"
    path.with_suffix(".pickle").write_bytes(pickle.dumps(workflow))
    path.write_text(
        "import pathlib, pickle\n"
        "from orchestration.airflow import dag\n"
        'dag(pickle.loads(pathlib.Path(__file__).with_suffix(".pickle").read_bytes()))\n'
    )
    return path
