"""Stand-ins for what runs in jobs and behind endpoints, so that a run takes a second.

Nothing of a user runs here: no container, no toolkit, no script. A training job writes the
checkpoints that its hyperparameter `scores` names, a processing job reports the score of the
checkpoint that it was given, an endpoint answers with the score of its model. All else is the
embedded AWS as it is: requests and their checks, data and file systems, checkpoints in S3,
statuses, faults. Two faults beside those of :class:`~orchestration.local.Fault` are met here,
because they come while a job runs: `INTERRUPTION` and `STOPPED`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject
from orchestration.local.account.records import INTERRUPTION
from orchestration.local.account.storage import Location
from orchestration.local.sagemaker.jobs.processing import ProcessingJob
from orchestration.local.sagemaker.jobs.training import TrainingJob
from orchestration.local.sagemaker.jobs.transform import TransformJob
from orchestration.local.sagemaker.outcomes import JobStopped
from orchestration.local.sagemaker.serving.model_host import ModelAnswer, ModelHost
from orchestration.local.sagemaker.workloads import Workloads
from tests.faults.cell import Work

STOPPED = "(stopped by someone)"
_MOMENT_S = 0.05


class StandInTraining(TrainingJob):
    """A training job that trains nothing."""

    work_s = _MOMENT_S

    def _train(self) -> None:
        scores = json.loads(self.request["HyperParameters"]["scores"]).split(",")
        self._write(1, scores[0])
        self._copy_out(final=True)
        if self.account.faults.job_fault(INTERRUPTION, self.name, self.request):
            self._interrupt()
        if self.account.faults.job_fault(STOPPED, self.name, self.request):
            self.stop()
        if self.stop_requested.wait(self.work_s):
            raise JobStopped
        for number, score in enumerate(scores[1:], start=2):
            self._write(number, score)
        host = self._cluster.hosts[0].directory
        (host / "log").write_text(f"score={scores[-1]}\n")
        (host / "model" / "model.json").write_text("{}")
        results = host / "input" / "data" / "results"
        if results.exists():
            (results / "summary.json").write_text(json.dumps(scores))

    def _write(self, number: int, score: str) -> None:
        folder = self._cluster.hosts[0].directory / "checkpoints" / f"step-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.json").write_text(json.dumps({"score": float(score)}))

    def _interrupt(self) -> None:
        """Lose the instance and begin again from the checkpoints, as managed spot training does.

        SageMaker gives up where it gets no other instance within `MaxWaitTimeInSeconds`.
        """
        self.enter("Interrupted", "Spot capacity was reclaimed")
        fault = self.account.faults.job_fault(INTERRUPTION, self.name, self.request)
        if fault is not None:
            raise JobStopped("MaxWaitTimeExceeded")
        self.enter("Starting", "Preparing the instances for training")
        self.enter("Downloading", "Downloading input data")
        config = self.request["CheckpointConfig"]
        if not storage.objects(Location.parse(config["S3Uri"])):
            raise AssertionError("an interrupted job found no checkpoint in S3")
        self.enter("Training", "Training image download completed. Training in progress.")


class StandInProcessing(ProcessingJob):
    """A processing job that reads the score of its checkpoint and reports it."""

    work_s = _MOMENT_S

    def _process(self) -> None:
        if self.account.faults.job_fault(STOPPED, self.name, self.request):
            self.stop()
        if self.stop_requested.wait(self.work_s):
            raise JobStopped
        host = self._cluster.hosts[0]
        local = self._paths(host).local
        folders = [local(each["S3Input"]["LocalPath"]) for each in self._inputs()]
        [model] = [path for folder in folders for path in folder.rglob("model.json")]
        report = {"metrics": json.loads(model.read_text())}
        for each in self._outputs():
            folder = local(each["S3Output"]["LocalPath"])
            (folder / "evaluation.json").write_text(json.dumps(report))


class StandInTransform(TransformJob):
    """A transform job that takes its time over each object."""

    work_s = _MOMENT_S

    def _asked(self, host: ModelHost, body: bytes, key: str) -> bytes:
        if self.account.faults.job_fault(STOPPED, self.name, self.request):
            self.stop()
        self.stop_requested.wait(self.work_s)
        return super()._asked(host, body, key)


class StandInHost(ModelHost):
    """A model that answers with its score."""

    def __init__(self, score: float, directory: Path) -> None:
        self.directory = directory
        self._score = score

    def invoke(self, body: bytes, headers: dict[str, str]) -> ModelAnswer:
        """Answer with the score."""
        answer = json.dumps({"score": self._score}).encode()
        return ModelAnswer(200, answer, (("Content-Type", "application/json"),))

    def logs(self) -> str:
        """Return nothing: nothing runs."""
        return ""

    def stop(self) -> None:
        """Do nothing: nothing runs."""


def host(account: Account, endpoint: str, model: JsonObject, directory: Path) -> ModelHost:
    """Read the model's score from S3."""
    source: Any = model["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]
    prefix = Location.parse(source["S3Uri"])
    score = json.loads(storage.read(prefix.child("model.json")))["score"]
    return StandInHost(score, directory)


def workloads(work_s: Mapping[Work, float]) -> Workloads:
    """Return the stand-ins; `work_s` is how long jobs run, unless they are stopped."""

    def working(stand_in: Any, kind: Work) -> Any:
        return type(stand_in.__name__, (stand_in,), {"work_s": work_s.get(kind, _MOMENT_S)})

    return Workloads(
        training=working(StandInTraining, "training"),
        processing=working(StandInProcessing, "processing"),
        transform=working(StandInTransform, "transform"),
        model_host=host,
    )
