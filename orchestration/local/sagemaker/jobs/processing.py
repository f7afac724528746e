"""Processing jobs: the entry point runs as a local process per host."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.account.storage import Location
from orchestration.local.processes.children import ChildProcess, read_log
from orchestration.local.sagemaker.checks.processing import check_processing_request
from orchestration.local.sagemaker.hosts import host_opt_ml, programs
from orchestration.local.sagemaker.hosts.cluster import Host, cluster
from orchestration.local.sagemaker.hosts.environment import interpreter, job_environment
from orchestration.local.sagemaker.hosts.paths import ContainerPaths
from orchestration.local.sagemaker.jobs import caching
from orchestration.local.sagemaker.jobs.checkpoints import CheckpointSync
from orchestration.local.sagemaker.jobs.inputs import bring_objects
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.jobs.log_streams import LogStream
from orchestration.local.sagemaker.jobs.runtime_limit import RuntimeLimit
from orchestration.local.sagemaker.outcomes import JobFailed, JobStopped, uploading

_POLL_S = 0.05
_COPY_EVERY_S = 0.5
_LONGEST_MESSAGE = 1024


class ProcessingJob(Job):
    """A processing job."""

    kind = "Processing"
    arn_word = "processing-job"

    def __init__(self, account: Account, request: JsonObject) -> None:
        check_processing_request(account, request)
        super().__init__(account, request)
        self._cluster = cluster(request["ProcessingResources"]["ClusterConfig"], self.directory)
        self._watch: host_opt_ml.Watch | None = None
        self._processes: list[ChildProcess] = []
        self._streams: list[LogStream] = []
        self._syncs: list[CheckpointSync] = []

    def run(self) -> None:
        """Fetch the inputs, run the entry point on every host, upload the outputs."""
        for host in self._cluster.hosts:
            self._prepare(host)
        self.started = now()
        results = caching.Results(self, self._cluster.hosts)
        try:
            if results.restored():
                self._open_streams()
            else:
                self._process()
        except JobStopped:
            self.status = "Stopping"
            raise
        finally:
            for process in self._processes:
                process.stop()
            self._copy_out(final=True)
        change = self._watch.change() if self._watch else None
        if change:
            raise JobFailed(f"AlgorithmError: {change}")
        results.keep()
        with uploading():
            self._upload()

    def describe(self) -> JsonObject:
        """Return the members that only processing jobs have.

        `ExitMessage` is the first KiB of what the containers wrote, one after the other, as AWS
        documents (byoc-metadata, read 2026-11-23).
        """
        messages = [read_log(host.directory / "output" / "message") for host in self._cluster.hosts]
        return {"ExitMessage": "".join(messages)[:_LONGEST_MESSAGE] or None}

    def logs(self) -> str:
        """Return the logs of all hosts so far."""
        return "".join(read_log(host.directory / "log") for host in self._cluster.hosts)

    def _paths(self, host: Host) -> ContainerPaths:
        named = [
            location["LocalPath"]
            for each in (*self._inputs(), *self._outputs())
            for location in (each.get("S3Input"), each.get("S3Output"))
            if location and "LocalPath" in location
        ]
        return ContainerPaths.covering(host.directory, named)

    def _inputs(self) -> list[Mapping[str, Any]]:
        return list(self.request.get("ProcessingInputs", []))

    def _outputs(self) -> list[Mapping[str, Any]]:
        return list(self.request.get("ProcessingOutputConfig", {}).get("Outputs", []))

    def _prepare(self, host: Host) -> None:
        paths = self._paths(host)
        for name in ("config", "output"):
            (host.directory / name).mkdir(parents=True, exist_ok=True)
        share = (host.index, len(self._cluster.hosts))
        for each in self._inputs():
            source = each["S3Input"]
            target = paths.local(source["LocalPath"])
            what = f"input '{each['InputName']}'"
            bring_objects(source, target, share=share, what=what, caller=self.caller)
        for each in self._outputs():
            target = each["S3Output"]
            folder = paths.local(target["LocalPath"])
            folder.mkdir(parents=True, exist_ok=True)
            if target["S3UploadMode"] == "Continuous":
                self._syncs.append(CheckpointSync(folder, target["S3Uri"], self.caller))
        config = {
            "processingjobconfig": self._job_config(),
            "resourceconfig": self._cluster.resource_config(host),
        }
        for file, content in config.items():
            (host.directory / "config" / f"{file}.json").write_text(json.dumps(content))

    def _job_config(self) -> JsonObject:
        return {key: value for key, value in self.request.items() if key != "Tags"} | {
            "ProcessingJobArn": self.arn
        }

    def _process(self) -> None:
        self._watch = host_opt_ml.watch(has_toolkit=False)
        self._check_program()
        for host in self._cluster.hosts:
            log = host.directory / "log"
            rewrite = self._paths(host).rewrite
            own = self.request.get("Environment", {})
            process = self.account.children.start(
                [rewrite(word) for word in self._command()],
                environment=job_environment(
                    self.account,
                    {key: rewrite(value) for key, value in own.items()},
                    {
                        "SAGEMAKER_BASE_DIR": str(host.directory),
                        "PROCESSING_JOB_NAME": self.name,
                        "PROCESSING_JOB_ARN": self.arn,
                    },
                ),
                directory=programs.folder(self.account, self.request, host),
                log=log,
                opt_ml=host_opt_ml.own(host.directory),
            )
            self._processes.append(process)
        self._open_streams()
        self._wait()

    def _open_streams(self) -> None:
        for host in self._cluster.hosts:
            stream = f"{self.name}/algo-{host.index + 1}-{int(time.time())}"
            group = "/aws/sagemaker/ProcessingJobs"
            log = host.directory / "log"
            self._streams.append(LogStream(self.caller, group, stream, log))

    def _check_program(self) -> None:
        program = self._command()[0]
        path = job_environment(self.account, {}, {})["PATH"]
        # A program below /opt/ml has come with the inputs.
        if "/" not in program and shutil.which(program, path=path) is None:
            raise JobFailed(
                f"ClientError: {program!r} is not a program of this machine, and "
                f"{programs.NAME_ONE}"
            )

    def _command(self) -> list[str]:
        running = programs.running(self.account, self.request, "AppSpecification")
        specification = running["AppSpecification"]
        arguments = specification.get("ContainerArguments", [])
        return [*interpreter(specification["ContainerEntrypoint"]), *arguments]

    def _wait(self) -> None:
        limit = RuntimeLimit(self.request, self.account.clock)
        next_copy = 0.0
        while any(process.exit_status is None for process in self._processes):
            if any(process.exit_status for process in self._processes):
                break
            if self.stop_requested.wait(_POLL_S):
                raise JobStopped
            limit.check()
            if time.monotonic() > next_copy:
                self._copy_out()
                next_copy = time.monotonic() + _COPY_EVERY_S
        status = next((p.exit_status for p in self._processes if p.exit_status), 0)
        if status:
            # AWS documents `FailureReason` as a reason of up to a KiB, and nowhere that it repeats
            # `ExitMessage`: assumed, as no public example of a job shows both.
            message = self.describe()["ExitMessage"] or "See job logs for more information"
            advice = self._watch.advice(message + self.logs()) if self._watch else ""
            raise JobFailed(f"AlgorithmError: {message}, exit code: {status}{advice}")

    def _copy_out(self, *, final: bool = False) -> None:
        for stream in self._streams:
            stream.copy(final=final)
        for sync in self._syncs:
            sync.upload(final=final)

    def _upload(self) -> None:
        for each in self._outputs():
            target = each["S3Output"]
            if target["S3UploadMode"] == "Continuous":
                continue  # It is there already.
            for host in self._cluster.hosts:
                directory = self._paths(host).local(target["LocalPath"])
                storage.upload(directory, Location.parse(target["S3Uri"], self.caller))
