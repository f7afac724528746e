"""Runs on an installation, and what they have cost."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration import Pipeline
from orchestration.expressions.evaluate import run_token
from orchestration.local.run.preparation import prepare
from tools.installation.airflow import ROOT, Airflow

DAGS = Path(__file__).with_name("dags")
PARAMETERS = {
    "bucket": "workspace",
    "data": "s3://incoming/set",
    "image": "any",
    "role": "arn:aws:iam::123456789012:role/SageMakerExecution",
}
ENDED = ("success", "failed")


@dataclass(frozen=True, slots=True)
class Task:
    """A task instance."""

    task_id: str
    map_index: int
    state: str | None
    try_number: int


@dataclass(slots=True)
class Run:
    """A run of a DAG."""

    airflow: Airflow
    dag_id: str
    run_id: str
    before: int
    """The number of the last call of AWS before it."""

    @property
    def path(self) -> str:
        """Its address in the REST API."""
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{self.run_id}"

    @property
    def state(self) -> str:
        """Its state."""
        return str(self.airflow.get(self.path)["state"])

    def tasks(self) -> dict[tuple[str, int], Task]:
        """Return its task instances."""
        answer = self.airflow.get(f"{self.path}/taskInstances?limit=200")["task_instances"]
        made = [Task(t["task_id"], t["map_index"], t["state"], t["try_number"]) for t in answer]
        return {(t.task_id, t.map_index): t for t in made}

    def task(self, task_id: str, map_index: int = -1) -> Task | None:
        """Return one of them."""
        return self.tasks().get((task_id, map_index))

    def wait_for(
        self, task_id: str, *states: str, map_index: int = -1, within_s: float = 240
    ) -> None:
        """Wait until a task is in one of some states."""
        self.airflow.wait(
            f"{task_id} {states}",
            lambda: (t := self.task(task_id, map_index)) is not None and t.state in states,
            within_s,
        )

    def wait_for_triggerer(self, task_id: str) -> None:
        """Wait until a task is deferred, and a triggerer has picked its trigger up."""
        path = f"{self.path}/taskInstances/{task_id}"

        def picked_up() -> bool:
            trigger = self.airflow.get(path)["trigger"]
            return trigger is not None and trigger["triggerer_id"] is not None

        self.wait_for(task_id, "deferred")
        self.airflow.wait(f"the triggerer of {task_id}", picked_up, 120)

    def wait(self, within_s: float = 400) -> str:
        """Wait for its end, and return its state."""
        self.airflow.wait(f"end of {self.run_id}", lambda: self.state in ENDED, within_s)
        return self.state

    def clear(self, *tasks: str, downstream: bool = False) -> None:
        """Clear some of its tasks, or all."""
        body: dict[str, Any] = {
            "dry_run": False,
            "only_failed": False,
            "dag_run_id": self.run_id,
            "include_downstream": downstream,
            "reset_dag_runs": True,
        }
        if tasks:
            body["task_ids"] = list(tasks)
        self.airflow.send("POST", f"/api/v2/dags/{self.dag_id}/clearTaskInstances", body)

    def mark(self, task_id: str, state: str, map_index: int | None = None) -> None:
        """Mark a task as failed or successful."""
        path = f"{self.path}/taskInstances/{task_id}"
        if map_index is not None:
            path += f"/{map_index}"
        self.airflow.send("PATCH", path, {"new_state": state})

    def end(self, state: str) -> None:
        """Mark the whole run."""
        self.airflow.send("PATCH", self.path, {"state": state})

    def delete(self) -> None:
        """Delete it."""
        self.airflow.send("DELETE", self.path)

    def made(self) -> Counter[str]:
        """Count what the run has made, by the operation that made it."""
        counts: Counter[str] = Counter()
        tokens, stopped = set(), set()
        for call in self.calls():
            if call.status >= 400:
                continue
            if call.operation == "CreateFileSystem":
                tokens.add(call.request.get("ClientRequestToken"))
            elif call.operation == "StopTrainingJob":
                # The triggerer and the run's last look may both stop a job.
                stopped.add(call.request["TrainingJobName"])
            else:
                counts[call.operation] += 1
        counts["CreateFileSystem"] = len(tokens)
        counts["StopTrainingJob"] = len(stopped)
        return +counts

    def calls(self) -> Iterator[Any]:
        """Yield the calls of Airflow, since the run began, that name it by its identity."""
        token = run_token(f"{self.dag_id}/{self.run_id}")
        for call in self.airflow.aws.calls():
            if call.sequence <= self.before or call.origin != "airflow":
                continue
            if token in json.dumps(call.request):
                yield call

    def left(self) -> list[str]:
        """Return the account's jobs of this DAG that have not ended, and its file systems."""
        state = self.airflow.aws.state()
        jobs = {
            name: str(job.get("TrainingJobStatus") or job.get("ProcessingJobStatus"))
            for kind in ("TrainingJobs", "ProcessingJobs")
            for name, job in state["sagemaker"][kind].items()
        }
        left = [f"{name} {s}" for name, s in jobs.items() if s in ("InProgress", "Stopping")]
        left = [text for text in left if text.startswith(f"{self.dag_id}-")]
        return left + (list(state["fsx"]["FileSystems"]) if self.dag_id == "lustre" else [])


def install(airflow: Airflow, folder: Path) -> None:
    """Put the DAG files, the data and the code in place."""
    shutil.copytree(DAGS, airflow.dags, dirs_exist_ok=True)
    (folder / "train").mkdir(parents=True)
    (folder / "holdout").mkdir()
    for part in ("train", "holdout"):
        (folder / part / "one.csv").write_text(part)
    text = (DAGS / "served.yaml").read_text()
    (airflow.dags / "held.yaml").write_text(text.replace("name: served", "name: held"))
    for name in ("served", "lustre", "held"):
        path = airflow.dags / f"{name}.yaml"
        lock(path)
        pipeline = Pipeline.load(path)
        prepare(airflow.aws, pipeline, pipeline.lower(), PARAMETERS, {PARAMETERS["data"]: folder})


def lock(path: Path) -> None:
    """Write the lock file of a pipeline."""
    command = [sys.executable, "-m", "orchestration.cli", "lock", str(path)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)


def start(airflow: Airflow, dag_id: str, run_id: str, **conf: Any) -> Run:
    """Start a run."""
    before = max((call.sequence for call in airflow.aws.calls()), default=0)
    body = {"dag_run_id": run_id, "logical_date": None, "conf": {**PARAMETERS, **conf}}
    airflow.send("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)
    return Run(airflow, dag_id, run_id, before)


def unpause(airflow: Airflow, *dag_ids: str) -> None:
    """Wait for DAGs to be there, and let them run."""
    for dag_id in dag_ids:
        airflow.wait(f"DAG {dag_id}", functools.partial(_exists, airflow, dag_id), 120)
        airflow.send("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})


def _exists(airflow: Airflow, dag_id: str) -> bool:
    with contextlib.suppress(RuntimeError):
        airflow.get(f"/api/v2/dags/{dag_id}")
        return True
    return False
