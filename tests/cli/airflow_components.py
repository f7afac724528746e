"""Components of an Airflow, each a process of its own: a scheduler with workers, a triggerer."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestration.local import EmbeddedAws
from tests.patience import PATIENCE_S

TIME_SCALE = 0.1
"""Below, a deferral would end before the executor has told of it."""


def account_of(aws: EmbeddedAws) -> dict[str, str]:
    """Return what makes an embedded AWS the one that AWS clients find."""
    kept = ("AWS_", "NO_PROXY", "no_proxy")
    return {name: value for name, value in aws.environment().items() if name.startswith(kept)}


def settings(variables: Mapping[str, str], url: str, aws: EmbeddedAws) -> dict[str, str]:
    """Return the environment of components that share a database with the API server at a URL."""
    return {
        **variables,
        **account_of(aws),
        "ORCHESTRATION_TIME_SCALE": str(aws.time_scale),
        "AIRFLOW_CONN_AWS_DEFAULT": "aws://",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        # A file has one writer at a time, for whom the others wait.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": (
            f"sqlite:///{variables['AIRFLOW_HOME']}/airflow.db?timeout={PATIENCE_S:.0f}"
        ),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(PATIENCE_S),
        # As TIME_SCALE: the executor tells of a deferral after this many seconds.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    }


@contextlib.contextmanager
def component(name: str, environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """Let a component run: ``scheduler`` or ``triggerer``."""
    with (
        log.open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "airflow", name, "--skip-serve-logs"],
            env=dict(environment),
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            yield
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
