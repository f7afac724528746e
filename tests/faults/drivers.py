"""One run of the flagship on one driver, in an account of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orchestration import Pipeline
from orchestration.direct.pipelines import workspace
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import dag_runs, direct_runs, executions
from orchestration.local.run.preparation import prepare
from orchestration.local.run.report import Followed
from tests.conformance import pipelines
from tests.conformance.sites import site_on, wait
from tests.conformance.test_conformance import Backend
from tests.faults.accounts import Account, Zygote
from tests.faults.cell import Cell, Deed
from tests.faults.flagship import ENDPOINT, OLD
from tests.faults.small import lay

SCALE = 0.002
_WORK_S: Mapping[Backend, float] = {"direct": 0.5, "airflow": 0.5, "step-functions": 60.0}
"""How long the jobs run that somebody is killed over: longer than the rest of the cell, where they
have to be stopped. Others are over in a moment, as in all cells."""
_MET_WORK_S: Mapping[Deed | None, float] = {"stop the search": 2.0}
"""How long jobs run that somebody stops meanwhile."""
KINDS_OF_JOBS = ("Training", "Processing", "Transform", "HyperParameterTuning")
OBJECTS = ("train/one.csv", "train/two words + ü.csv", "holdout/held.csv")


@dataclass(frozen=True)
class Ending:
    """What is left after a run, and what it said."""

    state: str
    error: str
    cause: str
    calls: tuple[Any, ...]
    account: Mapping[str, Any]
    answer: float | None
    """The score that the endpoint answers with; None if it serves nothing."""
    log: str = ""


class Drivers:
    """The drivers, the zygote of their accounts, and the Airflow of all runs."""

    def __init__(
        self, zygote: Zygote, airflow: LocalAirflow, folder: Path, pipeline: Pipeline
    ) -> None:
        self._zygote = zygote
        self._airflow = airflow
        self._folder = folder
        self._pipeline = pipeline
        self._workflow = pipeline.lower()
        for name in OBJECTS:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)

    def run(self, on: Backend, run_id: str, cell: Cell) -> Ending:
        """Run the pipeline under the faults of a cell."""
        work_s = _WORK_S[on] if cell.killed else _MET_WORK_S.get(cell.deed)
        long = {} if work_s is None or cell.work is None else {cell.work: work_s}
        with self._zygote.account(SCALE, long) as aws:
            self._prepare(aws, served=cell.served)
            for fault in cell.faults:
                aws.inject(fault)
            if cell.moment is None:
                return self._ending(aws, self._followed(on, aws, run_id))
            aws.lay(cell.moment)
            if cell.deed is not None:
                return self._ending(aws, self._met(on, aws, run_id, _DEEDS[cell.deed]))
            return self._ending(aws, self._killed(on, aws, run_id))

    @cached_property
    def _workspace(self) -> str:
        return workspace(self._pipeline, self._values)

    @property
    def _values(self) -> dict[str, Any]:
        declared = {spec.name for spec in self._workflow.parameters}
        return {name: v for name, v in pipelines.PARAMETERS.items() if name in declared}

    def _prepare(self, aws: Account, *, served: bool) -> None:
        uploads = {pipelines.PARAMETERS["data"]: self._folder}
        prepare(aws, self._pipeline, self._workflow, self._values, uploads)
        for stage in (*self._pipeline.on_failure, *self._pipeline.always):
            aws.client("sns").create_topic(Name=stage.name)
        lay(aws.client("s3"))
        if served:
            _serve_the_old_model(aws)

    def _followed(self, on: Backend, aws: Account, run_id: str) -> Followed:
        if on == "direct":
            return direct_runs.follow(
                aws, self._workflow, self._values, run_id, _quiet, workspace=self._workspace
            )
        if on == "step-functions":
            return executions.follow(aws, self._workflow, self._values, run_id, _quiet)
        return dag_runs.follow(aws, self._workflow, self._values, run_id, _quiet, self._airflow)

    def _met(
        self, on: Backend, aws: Account, run_id: str, deed: Callable[[Account], None]
    ) -> Followed:
        """Do what somebody else does meanwhile, before the run knows the call's answer."""
        with ThreadPoolExecutor() as pool:
            run = pool.submit(self._followed, on, aws, run_id)
            wait(lambda: aws.held() or run.done())
            deed(aws)
            aws.release()
            return run.result()

    def _killed(self, on: Backend, aws: Account, run_id: str) -> Followed:
        """Kill what drives the run once the call has taken effect, before it knows the answer."""
        if on == "step-functions":
            return self._aborted(aws)
        if on == "direct":
            run = {
                "workflow": self._workflow,
                "values": self._values,
                "run_id": run_id,
                "workspace": self._workspace,
            }
            with self._zygote.direct(aws, run):
                wait(aws.held)
        else:
            with ThreadPoolExecutor() as pool:
                killed = pool.submit(self._followed, on, aws, run_id)
                wait(lambda: aws.held() or killed.done())
                self._airflow.kill()
                if killed.exception() is None:
                    return killed.result()
        aws.release()
        return self._followed(on, aws, run_id)

    def _aborted(self, aws: Account) -> Followed:
        """Stop the execution at that moment, and wait for its companion."""
        site = site_on(aws, self._pipeline, self._values)
        execution = site.start()
        wait(aws.held)
        # It waits for the response that is held back.
        site.stop(execution, ended=False)
        aws.release()
        site.cleans()
        wait(lambda: not _settling(aws))
        return Followed(identity=execution, state="failed", error="Stopped", cause="by a person")

    def _ending(self, aws: Account, followed: Followed) -> Ending:
        aws.clear_faults()
        return Ending(
            followed.state,
            followed.error or "",
            followed.cause or "",
            tuple(aws.calls()),
            aws.state(),
            _answer(aws),
            followed.log,
        )


def _quiet(_: object) -> None:
    pass


def _settling(aws: Account) -> bool:
    """Return whether something is about to end that was told to.

    SageMaker ends a job that is `Stopping` by itself, after two minutes at the latest, and a search
    once its jobs have ended, of which it starts no more: the companion asks for the stop, and has
    nothing to do afterwards. What does not stop makes this wait fail.
    """
    account = aws.state()["sagemaker"]
    endpoints = account["Endpoints"].values()
    return any(each["EndpointStatus"] in ("Creating", "Updating") for each in endpoints) or any(
        job[f"{kind}JobStatus"] == "Stopping"
        for kind in KINDS_OF_JOBS
        for job in account[f"{kind}Jobs"].values()
    )


def _cancel_a_task(aws: Account) -> None:
    fsx = aws.client("fsx")
    [task] = (
        task["TaskId"]
        for task in fsx.describe_data_repository_tasks()["DataRepositoryTasks"]
        if task["Lifecycle"] in ("PENDING", "EXECUTING")
    )
    fsx.cancel_data_repository_task(TaskId=task)


def _delete_all_data(aws: Account) -> None:
    fsx = aws.client("fsx")
    [system] = fsx.describe_file_systems()["FileSystems"]
    fsx.delete_file_system(FileSystemId=system["FileSystemId"])
    wait(lambda: not aws.state()["fsx"]["FileSystems"])


def _cancel_the_copy(aws: Account) -> None:
    [job] = aws.state()["s3control"]["Jobs"]
    aws.client("s3control").update_job_status(
        AccountId="123456789012", JobId=job["JobId"], RequestedJobStatus="Cancelled"
    )


def _stop_the_search(aws: Account) -> None:
    [name] = aws.state()["sagemaker"]["HyperParameterTuningJobs"]
    aws.client("sagemaker").stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)


_DEEDS: Mapping[Deed, Callable[[Account], None]] = {
    "cancel a task": _cancel_a_task,
    "delete all data": _delete_all_data,
    "cancel the copy": _cancel_the_copy,
    "stop the search": _stop_the_search,
}


def _serve_the_old_model(aws: Account) -> None:
    """Deploy a model under the flagship's endpoint, as an earlier run did."""
    key = "old/model.json"
    aws.client("s3").put_object(Bucket="workspace", Key=key, Body=json.dumps({"score": OLD}))
    source = {
        "S3Uri": "s3://workspace/old/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
    }
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(
        ModelName="old",
        ExecutionRoleArn=pipelines.PARAMETERS["role"],
        PrimaryContainer={
            "Image": pipelines.IMAGE,
            "ModelDataSource": {"S3DataSource": source},
        },
    )
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": "old",
        "InstanceType": "ml.c5.xlarge",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName="old", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="old")
    describe = sagemaker.describe_endpoint
    while describe(EndpointName=ENDPOINT)["EndpointStatus"] != "InService":
        continue


def _answer(aws: Account) -> float | None:
    runtime = aws.client("sagemaker-runtime")
    try:
        response = runtime.invoke_endpoint(EndpointName=ENDPOINT, Body=b"{}")
    except runtime.exceptions.ClientError:
        return None
    return float(json.loads(response["Body"].read())["score"])
