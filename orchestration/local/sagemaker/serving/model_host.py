"""The child processes that host a model, one for each of its containers, as the server sees it."""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import Answer, JsonObject, ServiceError
from orchestration.local.account.stand_ins import StandIn
from orchestration.local.iam.working import require
from orchestration.local.processes.children import ChildProcess, read_log
from orchestration.local.processes.ports import free_ports
from orchestration.local.processes.starting import StartingTime
from orchestration.local.sagemaker.checks.hosting import containers, model_reader
from orchestration.local.sagemaker.hosts import host_opt_ml
from orchestration.local.sagemaker.hosts.environment import job_environment
from orchestration.local.sagemaker.model_files import CodeMissing, fetch, fetch_beside

# https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html: a container
# has 8 minutes until it answers /ping, where a configuration says nothing else, and 2 seconds for
# each answer. A model that can't be loaded ends its process long before.
_STARTS_WITHIN_S = 480.0
_PING_S = 2.0
_OK = 200
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

    def wait_until_ready(self, within_s: float = _STARTS_WITHIN_S, scale: float = 1.0) -> None:
        """Wait until the model is loaded; raise `ModelHostFailed` if it fails."""
        starting = StartingTime(self._process.pid, scale)
        while starting.elapsed_s() < within_s and self._process.exit_status is None:
            if self._is_ready():
                return
            time.sleep(_POLL_S)
        if self._process.exit_status is None:
            reason = f"it did not answer GET /ping within {within_s:.0f} s"
        else:
            lines = self.logs().strip().splitlines()
            reason = lines[-1] if lines else "the model's process ended without any output"
        self.stop()
        raise ModelHostFailed(reason, self.logs(), self._name)

    def _is_ready(self) -> bool:
        """Return whether the model is loaded: our own server names its port then."""
        port_file = self.directory / "port"
        if not port_file.exists():
            return False
        self._port = int(port_file.read_text())
        return True

    def invoke(self, body: bytes, headers: dict[str, str]) -> ModelAnswer:
        """Send an inference request to the model."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, _ANSWERS_WITHIN_S)
        try:
            connection.request("POST", "/invocations", body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
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


class ContainerHost(ModelHost):
    """A program that runs in the place of a container's own, and answers on a port as it does."""

    def __init__(self, process: ChildProcess, directory: Path, name: str, port: int) -> None:
        super().__init__(process, directory, name)
        self._port = port

    @override
    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, _PING_S)
        try:
            connection.request("GET", "/ping")
            return connection.getresponse().status == _OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


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
    require(str(model.get("ExecutionRoleArn", "")), model, account.region)
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
    try:
        fetch(container, model_dir, reader)
    except CodeMissing as error:
        raise ModelHostFailed(str(error)) from error
    fetch_beside(container, beside, reader)
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
    host = _launched(account, account.stand_ins.of(model), environment, directory, name)
    within_s = model.get("ContainerStartupHealthCheckTimeoutInSeconds", _STARTS_WITHIN_S)
    host.wait_until_ready(within_s, account.clock.scale)
    change = watch.change() if watch else None
    if change:
        host.stop()
        raise ModelHostFailed(change, host.logs(), name)
    return host


def _launched(
    account: Account,
    stand_in: StandIn | None,
    environment: dict[str, str],
    directory: Path,
    name: str,
) -> ModelHost:
    """Start what serves: our own server of `model_fn` and so on, or the program that stands in."""
    if stand_in is None:
        module = "orchestration.local.sagemaker.serving.hosting"
        command: Sequence[str] = (sys.executable, "-m", module, str(directory))
        port = 0
    else:
        command = stand_in.command
        [port] = free_ports()
        # So SageMaker itself tells the port to containers that take others than 8080.
        environment = {**environment, "SAGEMAKER_BIND_TO_PORT": str(port)}
    folder = directory if stand_in is None else Path(stand_in.directory or directory)
    process = account.children.start(
        command,
        environment=environment,
        directory=folder,
        log=directory / "log",
        opt_ml=host_opt_ml.own(directory),
    )
    if stand_in is None:
        return ModelHost(process, directory, name)
    return ContainerHost(process, directory, name, port)
