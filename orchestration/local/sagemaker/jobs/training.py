"""Training jobs: the in-container toolkit runs as a local process tree per host."""

from __future__ import annotations

import json
import math
import time

from typing_extensions import override

from orchestration.execution.reading.metrics import final_metrics
from orchestration.local.account import sharing, storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.account.storage import Location
from orchestration.local.processes.children import ChildProcess, read_end, read_log
from orchestration.local.sagemaker import archive
from orchestration.local.sagemaker.checks.training import check_training_request
from orchestration.local.sagemaker.hosts import host_opt_ml, programs
from orchestration.local.sagemaker.hosts.cluster import Cluster, Host, cluster
from orchestration.local.sagemaker.hosts.isolation import need
from orchestration.local.sagemaker.hosts.launching import Launch, container_paths
from orchestration.local.sagemaker.jobs import caching, interruptions
from orchestration.local.sagemaker.jobs.checkpoints import CheckpointSync
from orchestration.local.sagemaker.jobs.inputs import bring_channel, input_mode, open_pipe, reaches
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.jobs.log_streams import LogStream
from orchestration.local.sagemaker.jobs.mounts import Mounts
from orchestration.local.sagemaker.jobs.pipes import Pipe
from orchestration.local.sagemaker.jobs.runtime_limit import RuntimeLimit
from orchestration.local.sagemaker.outcomes import Interrupted, JobFailed, JobStopped, uploading

_POLL_S = 0.1
_SYNC_EVERY_S = 0.5
_DEFAULT_CHECKPOINTS = "/opt/ml/checkpoints"
_DEFAULTS = {
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}


class TrainingJob(Job):
    """A training job."""

    kind = "Training"
    arn_word = "training-job"

    def __init__(self, account: Account, request: JsonObject, mounts: Mounts) -> None:
        check_training_request(account, request, mounts.subnets)
        super().__init__(account, request)
        self._mounts = mounts
        self.secondary_status = "Starting"
        self.transitions: list[JsonObject] = []
        self.metrics: list[JsonObject] = []
        self.artifacts: str | None = None
        self._running = programs.running(account, request, "AlgorithmSpecification")
        self._cluster: Cluster = cluster(
            request["ResourceConfig"], self.directory, isolated=need(self._running) is not None
        )
        self._has_toolkit = "ContainerEntrypoint" not in self._running["AlgorithmSpecification"]
        self._watch: host_opt_ml.Watch | None = None
        self._processes: list[ChildProcess] = []
        self._companions: list[ChildProcess] = []
        self._pipes: list[Pipe] = []
        self._syncs: list[CheckpointSync] = []
        self._streams: list[LogStream] = []
        self._launched_at = 0
        self.enter("Starting", "Launching requested ML instances")

    def enter(self, secondary_status: str, message: str = "") -> None:
        """Enter a new phase and record the transition."""
        super().enter(secondary_status)
        if self.transitions:
            self.transitions[-1].setdefault("EndTime", self.modified)
        self.secondary_status = secondary_status
        entry = {"Status": secondary_status, "StartTime": self.modified, "StatusMessage": message}
        if secondary_status in ("Completed", "Failed", "Stopped", "MaxRuntimeExceeded"):
            entry["EndTime"] = self.modified
        self.transitions.append(entry)

    def run(self) -> None:
        """Fetch the data, train on every host, upload the results."""
        self.enter("Downloading", "Downloading input data")
        self._check_buckets()
        try:
            self._prepare()
        except JobFailed:
            self._close_pipes()
            raise
        self.enter("Training", "Training image download completed. Training in progress.")
        self.started = now()
        stopped: JobStopped | None = None
        results = caching.Results(self, self._cluster.hosts)
        try:
            if results.restored():
                self._open_streams()
            else:
                self._train_through_interruptions()
        except JobStopped as stop:
            # The output of a stopped job is kept.
            self.status = "Stopping"
            stopped = stop
        finally:
            self._end_processes()
        if stopped is None:
            self._check_opt_ml()
            results.keep()
            self.enter("Uploading", "Uploading generated training model")
        with uploading():
            self._upload()
        if stopped:
            raise stopped

    def describe(self) -> JsonObject:
        """Return the members that only training jobs have."""
        end = self.ended or now()
        seconds = math.ceil((end - self.started).total_seconds()) if self.started else 0
        return {
            **{key: value for key, value in _DEFAULTS.items() if key not in self.request},
            "SecondaryStatus": self.secondary_status,
            "SecondaryStatusTransitions": [dict(entry) for entry in self.transitions],
            "ModelArtifacts": {"S3ModelArtifacts": self.artifacts} if self.artifacts else None,
            "FinalMetricDataList": self.metrics or None,
            "TrainingTimeInSeconds": seconds if self.ended else None,
            # Of one instance, whatever their number:
            # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html
            "BillableTimeInSeconds": seconds if self.ended else None,
        }

    @override
    def progress(self) -> JsonObject:
        """Return its phase, the metrics that its log tells lately, and its newest checkpoint."""
        definitions = self.request["AlgorithmSpecification"].get("MetricDefinitions", [])
        metrics = final_metrics(definitions, self.recent_log(), now())
        return {
            **super().progress(),
            "phase": self.secondary_status,
            "metrics": {metric["MetricName"]: metric["Value"] for metric in metrics},
            "checkpoint": next((sync.newest for sync in self._syncs if sync.newest), None),
        }

    @override
    def recent_log(self) -> str:
        """Return the ends of the logs of all hosts, the first host's last."""
        return "".join(read_end(host.directory / "log") for host in reversed(self._cluster.hosts))

    def logs(self) -> str:
        """Return the logs of all hosts so far."""
        return "".join(read_log(host.directory / "log") for host in self._cluster.hosts)

    def _check_buckets(self) -> None:
        output = Location.parse(self.request["OutputDataConfig"]["S3OutputPath"])
        if sharing.owner(output.bucket) is None:
            raise JobFailed(f"ClientError: the output bucket '{output.bucket}' does not exist")

    def _prepare(self) -> None:
        for host in self._cluster.hosts:
            for name in ("input/config", "model", "output/data", "code"):
                (host.directory / name).mkdir(parents=True, exist_ok=True)
            for channel in self._channels(host):
                self._bring(channel, host)
            self._write_config(host)
            self._restore_checkpoints(host)

    def _channels(self, host: Host) -> list[JsonObject]:
        channels = self.request.get("InputDataConfig", [])
        return [channel for channel in channels if reaches(channel, host.group)]

    def _bring(self, channel: JsonObject, host: Host) -> None:
        target = host.directory / "input" / "data" / channel["ChannelName"]
        # Only the hosts that get a sharded channel share it.
        hosts = [other for other in self._cluster.hosts if reaches(channel, other.group)]
        share = (hosts.index(host), len(hosts))
        if input_mode(channel, self.request) == "Pipe":
            self._pipes.append(open_pipe(channel, target, share=share, caller=self.caller))
        else:
            bring_channel(channel, target, share=share, mounts=self._mounts, caller=self.caller)

    def _write_config(self, host: Host) -> None:
        paths = container_paths(host, self._running)
        hyperparameters = self.request.get("HyperParameters", {})
        channels = {
            channel["ChannelName"]: {
                "TrainingInputMode": input_mode(channel, self.request),
                "S3DistributionType": channel["DataSource"]
                .get("S3DataSource", {})
                .get("S3DataDistributionType", "FullyReplicated"),
                "RecordWrapperType": channel.get("RecordWrapperType", "None"),
                **({"ContentType": channel["ContentType"]} if "ContentType" in channel else {}),
            }
            for channel in self._channels(host)
        }
        config = {
            "hyperparameters": {
                key: paths.rewrite(value) for key, value in hyperparameters.items()
            },
            "resourceconfig": self._cluster.resource_config(host),
            "inputdataconfig": channels,
        }
        for name, content in config.items():
            file = host.directory / "input" / "config" / f"{name}.json"
            file.write_text(json.dumps(content))

    def _restore_checkpoints(self, host: Host) -> None:
        config = self.request.get("CheckpointConfig")
        if config:
            local = container_paths(host, self._running).local(
                config.get("LocalPath", _DEFAULT_CHECKPOINTS)
            )
            sync = CheckpointSync(local, config["S3Uri"], self.caller)
            sync.restore()
            self._syncs.append(sync)

    def _train_through_interruptions(self) -> None:
        while True:
            try:
                return self._train()
            except Interrupted:
                self._begin_again()

    def _begin_again(self) -> None:
        """Begin on other instances, with what is in S3 of the checkpoints."""
        self.enter("Interrupted", "The instances were taken back")
        for process in (*self._processes, *self._companions):
            process.stop()
        self._close_pipes()
        for stream in self._streams:
            stream.copy(final=True)
        interruptions.lose(self._cluster)
        for left in (self._processes, self._companions, self._pipes, self._syncs, self._streams):
            left.clear()
        self.enter("Starting", "Preparing the instances for training")
        self.enter("Downloading", "Downloading input data")
        self._prepare()
        self.enter("Training", "Training image download completed. Training in progress.")

    def _train(self) -> None:
        if self._has_toolkit and not _names_a_script(self.request):
            image = self.request["AlgorithmSpecification"].get("TrainingImage")
            raise JobFailed(
                f"ClientError: {image} has a program of its own, and {programs.NAME_ONE}"
            )
        if need(self._running) is None:
            self._watch = host_opt_ml.watch(has_toolkit=self._has_toolkit)
        launch = Launch(self.account, self._running, self._cluster, self.directory)
        self._processes += [launch.start(host) for host in self._cluster.hosts]
        self._open_streams()
        self._companions += launch.companions()
        self._wait()

    def _open_streams(self) -> None:
        # Each beginning has streams of its own.
        self._launched_at = max(int(time.time()), self._launched_at + 1)
        for host in self._cluster.hosts:
            stream = f"{self.name}/algo-{host.index + 1}-{self._launched_at}"
            group = "/aws/sagemaker/TrainingJobs"
            log = host.directory / "log"
            self._streams.append(LogStream(self.caller, group, stream, log))

    def _wait(self) -> None:
        limit = RuntimeLimit(self.request, self.account.clock)
        next_sync = 0.0
        while any(process.exit_status is None for process in self._processes):
            if any(process.exit_status for process in self._processes):
                break
            if self.stop_requested.wait(_POLL_S):
                raise JobStopped
            limit.check()
            if time.monotonic() > next_sync:
                self._copy_out()
                interruptions.check(self.account, self.name, self.request, self.caller)
                next_sync = time.monotonic() + _SYNC_EVERY_S
        self._judge()

    def _judge(self) -> None:
        """Raise `JobFailed` if a host failed; the toolkit's exit status alone is not enough."""
        for host, process in zip(self._cluster.hosts, self._processes, strict=True):
            output = host.directory / "output"
            succeeded = (
                (output / "success").exists() if self._has_toolkit else not process.exit_status
            )
            if process.exit_status is None or succeeded:
                continue
            reason = read_log(output / "failure") or "See job logs for more information"
            code = process.exit_status
            text = reason if self._has_toolkit else reason + self.logs()
            advice = self._watch.advice(text) if self._watch else ""
            cause = reason.strip()[: 900 - len(advice)]
            raise JobFailed(f"AlgorithmError: {cause}, exit code: {code}{advice}")

    def _check_opt_ml(self) -> None:
        change = self._watch.change() if self._watch else None
        if change:
            raise JobFailed(f"AlgorithmError: {change}")

    def _end_processes(self) -> None:
        for process in (*self._processes, *self._companions):
            process.stop()
        self._close_pipes()
        self._copy_out(final=True)
        definitions = self.request["AlgorithmSpecification"].get("MetricDefinitions", [])
        self.metrics = final_metrics(definitions, self.logs(), now())

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            pipe.close()

    def _copy_out(self, *, final: bool = False) -> None:
        for sync in self._syncs:
            sync.upload(final=final)
        for stream in self._streams:
            stream.copy(final=final)

    def _upload(self) -> None:
        first = self._cluster.hosts[0].directory
        root = Location.parse(self.request["OutputDataConfig"]["S3OutputPath"], self.caller)
        output = root.child(f"{self.name}/output")
        model = output.child("model.tar.gz")
        compression = self.request["OutputDataConfig"].get("CompressionType", "GZIP")
        if compression == "NONE":
            model = output.child("model/")
            storage.upload(first / "model", model)
        else:
            storage.write(model, archive.pack(first / "model"))
        data = first / "output" / "data"
        if any(data.iterdir()):
            storage.write(output.child("output.tar.gz"), archive.pack(data))
        self.artifacts = str(model)


def _names_a_script(request: JsonObject) -> bool:
    """Return whether the training toolkit of an image knows what to run."""
    named = request.get("HyperParameters", {}).get("sagemaker_program")
    return bool(named or request.get("Environment", {}).get("SAGEMAKER_PROGRAM"))
