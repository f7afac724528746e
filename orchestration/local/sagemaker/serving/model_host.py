"""The child processes that host a model, one for each of its containers, as the server sees it."""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import Answer, JsonObject, ServiceError
from orchestration.local.account.storage import Caller, Location
from orchestration.local.processes.children import ChildProcess, read_log
from orchestration.local.processes.working_time import WorkingTime
from orchestration.local.sagemaker import archive
from orchestration.local.sagemaker.checks.hosting import containers, model_data, model_reader
from orchestration.local.sagemaker.hosts import host_opt_ml
from orchestration.local.sagemaker.hosts.environment import job_environment

# An hour is the most that SageMaker grants a container (ContainerStartupHealthCheckTimeout); a
# model that can't be loaded ends its process long before, and so does not wait for this.
_STARTS_WITHIN_S = 3600.0
# SageMaker gives a model 60 seconds; what a GPU answers in a second may take a CPU longer.
_ANSWERS_WITHIN_S = 600.0
_POLL_S = 0.05
_REFUSED = 400
PRIMARY = "primary"


class ModelHostFailed(Exception):
    """A model could not be served; `logs` is what its process wrote."""

    def __init__(self, reason: str, logs: str = "", container: str = PRIMARY) -> None:
        super().__init__(reason)
        self.logs = logs
        self.container = container


@dataclass(frozen=True, slots=True)
class ModelAnswer(Answer):
    """A container's answer."""

    container: str = PRIMARY
    """The name of the container: `primary`, or `container-2` of several."""


class ModelHost:
    """A running model."""

    def __init__(self, process: ChildProcess, directory: Path, name: str = PRIMARY) -> None:
        self._process = process
        self._name = name
        self.directory = directory
        self._port = 0

    def wait_until_ready(self, within_s: float = _STARTS_WITHIN_S) -> None:
        """Wait until the model is loaded; raise `ModelHostFailed` if it fails."""
        working = WorkingTime()
        port_file = self.directory / "port"
        while working.elapsed_s() < within_s and self._process.exit_status is None:
            if port_file.exists():
                self._port = int(port_file.read_text())
                return
            time.sleep(_POLL_S)
        if self._process.exit_status is None:
            reason = f"the model did not start within {within_s:.0f} s"
        else:
            lines = self.logs().strip().splitlines()
            reason = lines[-1] if lines else "the model's process ended without any output"
        self.stop()
        raise ModelHostFailed(reason, self.logs(), self._name)

    def invoke(self, body: bytes, headers: dict[str, str]) -> ModelAnswer:
        """Send an inference request to the model."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, _ANSWERS_WITHIN_S)
        try:
            connection.request("POST", "/invocations", body, headers)
            response = connection.getresponse()
            content = response.read()
        except OSError as error:
            message = f"the model's process does not answer: {error}".encode()
            return ModelAnswer(500, message, container=self._name)
        finally:
            connection.close()
        kind = response.getheader("Content-Type", "application/octet-stream")
        headers_back = (("Content-Type", kind),)
        return ModelAnswer(response.status, content, headers_back, container=self._name)

    def logs(self) -> str:
        """Return the model's log so far."""
        return read_log(self.directory / "log")

    def stop(self) -> None:
        """Stop the process."""
        self._process.stop(grace_s=1)


class HostSequence(ModelHost):
    """The running containers of one model: each one's answer is the next one's request."""

    def __init__(self, hosts: Sequence[ModelHost], directory: Path) -> None:
        self._hosts = hosts
        self.directory = directory

    @override
    def invoke(self, body: bytes, headers: dict[str, str]) -> ModelAnswer:
        """Send a request through all containers, up to one that refuses it.

        Only the last one is told what the caller accepts; the others answer as is their default:
        https://docs.aws.amazon.com/sagemaker/latest/dg/inference-pipelines.html, and the samples
        of AWS, which say that JSON is the default between containers.
        """
        *before, last = self._hosts
        accept, kind = headers.get("Accept", "*/*"), headers.get("Content-Type", "")
        for host in before:
            answer = host.invoke(body, {"Content-Type": kind})
            if answer.status >= _REFUSED:
                return answer
            body, kind = answer.body, dict(answer.headers)["Content-Type"]
        return last.invoke(body, {"Content-Type": kind, "Accept": accept})

    @override
    def logs(self) -> str:
        """Return the logs of all containers so far."""
        return "".join(host.logs() for host in self._hosts)

    @override
    def stop(self) -> None:
        """Stop all processes."""
        for host in self._hosts:
            host.stop()


class NoModel(ModelHost):
    """Instances without a model of their own, for inference components."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @override
    def logs(self) -> str:
        """Return nothing: no process writes any."""
        return ""

    @override
    def stop(self) -> None:
        """Do nothing: there is no process."""


def start_model_host(
    account: Account, endpoint_name: str, model: JsonObject, directory: Path
) -> ModelHost:
    """Fetch a model and start what serves it; raise `ModelHostFailed` on failure."""
    served = containers(model)
    if len(served) == 1:
        return _started(account, endpoint_name, model, (served[0], PRIMARY), directory)
    hosts: list[ModelHost] = []
    try:
        for number, container in enumerate(served, start=1):
            name = f"container-{number}"
            named = (container, name)
            hosts.append(_started(account, endpoint_name, model, named, directory / name))
    except (ModelHostFailed, ServiceError):
        HostSequence(hosts, directory).stop()
        raise
    return HostSequence(hosts, directory)


def _started(
    account: Account,
    endpoint_name: str,
    model: JsonObject,
    named: tuple[JsonObject, str],
    directory: Path,
) -> ModelHost:
    """Start the process of one container, which has a name."""
    container, name = named
    model_dir = directory / "model"
    model_dir.mkdir(parents=True)
    beside, reader = directory / "additional-model-data-sources", model_reader(account, model)
    _fetch(container, model_dir, reader)
    _fetch_beside(container, beside, reader)
    own = dict(container.get("Environment", {}))
    for inside, outside in (("model", model_dir), (beside.name, beside)):
        own = {key: text.replace(f"/opt/ml/{inside}", str(outside)) for key, text in own.items()}
    environment = job_environment(
        account,
        own,
        {
            "SAGEMAKER_BASE_DIR": str(directory),
            "ENDPOINT_NAME": endpoint_name,
            "SAGEMAKER_REGION": account.region,
        },
    )
    watch = host_opt_ml.watch(has_toolkit=False)
    process = account.children.start(
        [sys.executable, "-m", "orchestration.local.sagemaker.serving.hosting", str(directory)],
        environment=environment,
        directory=directory,
        log=directory / "log",
        opt_ml=host_opt_ml.own(directory),
    )
    host = ModelHost(process, directory, name)
    host.wait_until_ready(
        model.get("ContainerStartupHealthCheckTimeoutInSeconds", _STARTS_WITHIN_S)
    )
    change = watch.change() if watch else None
    if change:
        host.stop()
        raise ModelHostFailed(change, host.logs(), name)
    return host


def _fetch(container: JsonObject, model_dir: Path, reader: Caller) -> None:
    location = model_data(container, reader)
    if location is None:
        return
    source = container.get("ModelDataSource", {}).get("S3DataSource", {})
    if source.get("S3DataType") == "S3Prefix" and source.get("CompressionType") == "None":
        storage.download(location, model_dir)
    else:
        archive.unpack(storage.read(location), model_dir)
    code = container.get("Environment", {}).get("SAGEMAKER_SUBMIT_DIRECTORY", "")
    code = code.strip('"')
    if code.startswith("s3://"):
        try:
            archive.unpack(storage.read(Location.parse(code, reader)), model_dir / "code")
        except ServiceError as error:
            raise ModelHostFailed(f"cannot fetch {code}: {error}") from error


def _fetch_beside(container: JsonObject, folder: Path, reader: Caller) -> None:
    """Fetch the data beside the model, each in a folder of its channel."""
    for each in container.get("AdditionalModelDataSources", []):
        source, place = each["S3DataSource"], folder / each["ChannelName"]
        place.mkdir(parents=True)
        location = Location.parse(source["S3Uri"], reader)
        if source["S3DataType"] == "S3Prefix" and source["CompressionType"] == "None":
            storage.download(location, place)
        else:
            archive.unpack(storage.read(location), place)
