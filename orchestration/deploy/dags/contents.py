"""The files that a DAG is made of: the DAG file, its YAML, the lock, and what the YAML names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from orchestration.backends import locks
from orchestration.backends.airflow import locking
from orchestration.errors import DeployError
from orchestration.pipeline.files import other_files

_DAG_FILE: Final = '''"""The pipeline in {name} as an Airflow DAG."""

from orchestration.airflow import dag

pipeline = dag("{name}")
'''


def contents(path: Path, dag: Path | None = None) -> dict[str, bytes]:
    """Return what Airflow needs to parse a pipeline's DAG, by its place below a folder.

    The DAG file is ``dag``, else the one of the YAML's name beside it, else one of two lines. A
    stale lock file is a :class:`~orchestration.errors.DeployError`: Airflow would render the
    pipeline at each parse, and would need the folders of code for that.
    """
    found = locking.specification(path)
    if isinstance(found, locking.Stale):
        raise DeployError(f"{found.reason}; run `orchestrate lock {path}` and deploy again")
    lock = locks.lock_path(path)
    beside = path.with_suffix(".py") if dag is None else dag
    if dag is not None and dag.parent.resolve() != path.parent.resolve():
        raise DeployError(f"the DAG file {dag} must lie beside {path}, which it names")
    code = beside.read_bytes() if beside.exists() else _DAG_FILE.format(name=path.name).encode()
    # A model's file may be missing: the lock file has what is known of it.
    named = [path.parent / name for name in other_files(path, json.loads(lock.read_bytes()))]
    files = [path, lock, *(file for file in named if file.is_file())]
    # Under their own names, links included: the DAG file names the YAML.
    own = {file.parent.resolve() / file.name: file.read_bytes() for file in files}
    top = Path(os.path.commonpath([file.parent for file in own]))
    placed = {file.relative_to(top).as_posix(): content for file, content in own.items()}
    # Last: whoever reads the folder meanwhile has the rest already.
    return {**placed, (path.parent.resolve() / beside.name).relative_to(top).as_posix(): code}
