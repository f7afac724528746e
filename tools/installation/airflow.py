"""An Airflow as people run it: scheduler with LocalExecutor, triggerer, DAG processor, API."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from orchestration.local import EmbeddedAws
from tools.installation.postgres import Postgres
from tools.installation.processes import descendants, end_orphans, free_port, kill, reap
from tools.installation.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = ("api-server", "scheduler", "triggerer", "dag-processor")
_PARALLELISM = 4
_OF_NO_USE = ("LocalExecutor: <idle>", "airflow serve-logs")
"""Titles of a scheduler's children that have nothing more to do when it is gone."""


class Airflow:
    """An installation in a folder, against an embedded AWS."""

    def __init__(self, folder: Path, postgres: Postgres, aws: EmbeddedAws) -> None:
        self.folder = folder
        self.dags = folder / "dags"
        self.postgres = postgres
        self.aws = aws
        self._port = free_port()
        self.aws_wire = Wire(int(aws.endpoint_url.rpartition(":")[2]))
        self.api_wire = Wire(self._port)
        self.environment = self._environment()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._token = ""
        self._replacing = threading.Lock()

    def start(self) -> None:
        """Make the database and start all components."""
        self.dags.mkdir(parents=True, exist_ok=True)
        (self.folder / "logs").mkdir(exist_ok=True)
        self._command("db", "migrate", check=True)
        for component in COMPONENTS:
            self.start_component(component)
        self.wait("the API server", lambda: self._signed_in(), 180)

    def close(self) -> None:
        """Close the wires; processes are ended by who started them all."""
        self.aws_wire.close()
        self.api_wire.close()

    def start_component(self, name: str) -> None:
        """Start a component that does not run."""
        # Everything listens on loopback only; the server of logs knows no address.
        options = {
            "api-server": ["--host", "127.0.0.1", "--port", str(self._port), "--workers", "1"],
            "scheduler": ["--skip-serve-logs"],
            "triggerer": ["--skip-serve-logs"],
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "airflow", name, *options.get(name, [])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )

    def ensure_component(self, name: str) -> None:
        """Start a component unless it runs."""
        if self._running[name].poll() is not None:
            self.start_component(name)

    def replace_component(self, name: str, *, whole: bool = True) -> None:
        """End a component at once and start another; its children live on if it is not `whole`."""
        with self._replacing:
            process = psutil.Process(self._running[name].pid)
            kill(process, *(descendants(process) if whole else []))
            self._running[name].wait()
            self.start_component(name)

    def stop_component(self, name: str) -> None:
        """End a component at once, with its children."""
        process = psutil.Process(self._running[name].pid)
        kill(process, *descendants(process))
        self._running[name].wait()

    def task_of(self, process: psutil.Process) -> tuple[psutil.Process, ...]:
        """Return a task's own process and its supervisor, given either."""
        parent = process.parent()
        title = " ".join(process.cmdline())
        if "LocalExecutor" in title and parent is not None and "task runner" not in title:
            return (*descendants(process), process)
        return (process, parent) if parent is not None else (process,)

    def get(self, path: str) -> Any:
        """Ask the REST API."""
        return self.send("GET", path)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the REST API."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        url = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        return json.loads(text) if text else None

    def wait(self, what: str, done: Callable[[], Any], seconds: float) -> Any:
        """Wait for something, and return it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            # A scheduler's connection to the database, and what it has locked there, lives on in
            # the processes that it has forked.
            end_orphans(*_OF_NO_USE)
            reap()
            if result := done():
                return result
            time.sleep(0.2)
        raise TimeoutError(f"{what}: nothing after {seconds:.0f} s")

    def _signed_in(self) -> bool:
        with contextlib.suppress(OSError, RuntimeError):
            url = f"http://127.0.0.1:{self._port}/auth/token"
            with urllib.request.urlopen(url, timeout=10) as answer:
                self._token = json.load(answer)["access_token"]
            return True
        return False

    def _command(self, *arguments: str, check: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self.environment,
            cwd=self.folder,
            check=check,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in self.aws.environment().items() if not k.startswith("AIRFLOW")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
        return kept | {
            "AWS_ENDPOINT_URL": self.aws_wire.url,
            "ORCHESTRATION_TIME_SCALE": str(self.aws.time_scale),
            "PYTHONPATH": path,
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW_CONN_AWS_DEFAULT": self._connection(),
            **{f"AIRFLOW__{name}": value for name, value in self._settings().items()},
        }

    def _connection(self) -> str:
        keys = {name: self.aws.environment()[f"AWS_{name}"] for name in _KEYS}
        return json.dumps(
            {
                "conn_type": "aws",
                "login": keys["ACCESS_KEY_ID"],
                "password": keys["SECRET_ACCESS_KEY"],
                "extra": {"region_name": self.aws.region, "endpoint_url": self.aws_wire.url},
            }
        )

    def _settings(self) -> Mapping[str, str]:
        return {
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_FOLDER": str(self.dags),
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": str(_PARALLELISM),
            "CORE__AUTH_MANAGER": _AUTH_MANAGER,
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "CORE__EXECUTION_API_SERVER_URL": f"{self.api_wire.url}/execution/",
            "CORE__DAGBAG_IMPORT_TIMEOUT": "600",
            "CORE__DEFAULT_TASK_RETRY_DELAY": "1",
            "DATABASE__SQL_ALCHEMY_CONN": self.postgres.url("psycopg2"),
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": self.postgres.url("asyncpg"),
            "API__BASE_URL": f"http://127.0.0.1:{self._port}",
            "API__SECRET_KEY": secrets.token_hex(16),
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "CORE__FERNET_KEY": "",
            "LOGGING__COLORED_CONSOLE_LOG": "False",
            "LOGGING__BASE_LOG_FOLDER": str(self.folder / "logs"),
            "LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            "LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
            "USAGE_DATA_COLLECTION__ENABLED": "False",
            # Losses are noticed within seconds, as nobody wants to wait for minutes here.
            "SCHEDULER__JOB_HEARTBEAT_SEC": "2",
            "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
            "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
            "SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "2",
            "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
            "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "4",
            "SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            # A deferred task that goes on before its executor has told of the deferral is taken for
            # lost (apache-airflow 3.3): the executor tells of it after this many seconds.
            "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            # The default, 5 s, is too short on a busy machine.
            "WORKERS__EXECUTION_API_TIMEOUT": "60",
            "TRIGGERER__JOB_HEARTBEAT_SEC": "2",
            "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
            "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
        }


_AUTH_MANAGER = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
_KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
