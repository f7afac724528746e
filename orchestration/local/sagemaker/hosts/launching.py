"""The start of a training job's hosts: their commands and environments."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject
from orchestration.local.processes.children import ChildProcess
from orchestration.local.sagemaker.hosts import container, host_opt_ml, isolation, programs
from orchestration.local.sagemaker.hosts.cluster import Cluster, Host
from orchestration.local.sagemaker.hosts.environment import interpreter, job_environment
from orchestration.local.sagemaker.hosts.isolation import Isolation
from orchestration.local.sagemaker.hosts.paths import ContainerPaths
from orchestration.local.sagemaker.hosts.toolkits import Toolkit, toolkit

_CONTAINER = Path(container.__file__)


class Launch:
    """The launcher of a training job's hosts.

    Raises :class:`JobFailed` if this machine cannot run the job.
    """

    def __init__(
        self, account: Account, request: JsonObject, cluster: Cluster, directory: Path
    ) -> None:
        self._account = account
        self._request = request
        self._cluster = cluster
        self._directory = directory
        specification = request["AlgorithmSpecification"]
        self._entry: list[str] = specification.get("ContainerEntrypoint", [])
        self._arguments: list[str] = specification.get("ContainerArguments", [])
        self._toolkit: Toolkit = toolkit(specification.get("TrainingImage", ""))
        reason = isolation.need(request)
        self._isolation = Isolation(cluster, directory, reason) if reason else None
        self._python = sys.executable
        if not self._entry:
            self._python = self._toolkit.interpreter(account.environment)

    def start(self, host: Host) -> ChildProcess:
        """Start one host."""
        paths = container_paths(host, self._request)
        command = self._command(paths)
        environment = self._environment(host, paths)
        if self._isolation:
            environment |= self._isolation.environment(host)
            command = self._isolation.command(host, command)
        return self._account.children.start(
            command,
            environment=environment,
            directory=programs.folder(self._account, self._request, host),
            log=host.directory / "log",
            opt_ml=None if self._isolation else host_opt_ml.own(host.directory),
        )

    def companions(self) -> list[ChildProcess]:
        """Start the processes that the hosts need."""
        if self._isolation is None:
            return []
        port = urlsplit(self._account.environment["AWS_ENDPOINT_URL"]).port or 80
        network = self._account.children.start(
            self._isolation.network(port),
            environment=self._account.environment,
            directory=self._directory,
            log=self._directory / "network.log",
        )
        return [network]

    def _command(self, paths: ContainerPaths) -> list[str]:
        if self._entry:
            words = (*interpreter(self._entry), *self._arguments)
            return [paths.rewrite(word) for word in words]
        return [self._python, "-P", str(_CONTAINER)]

    def _environment(self, host: Host, paths: ContainerPaths) -> dict[str, str]:
        own = self._request.get("Environment", {})
        account = self._account
        fixed = {
            container.DEVICES: str(account.devices_per_host * host.is_accelerated),
            container.PORT: str(self._cluster.ports[host.group]),
            "SAGEMAKER_BASE_DIR": paths.root,
            "SAGEMAKER_TRAINING_MODULE": self._toolkit.training_module,
            "TRAINING_JOB_NAME": self._request["TrainingJobName"],
            "TRAINING_JOB_ARN": account.arn(
                "sagemaker", f"training-job/{self._request['TrainingJobName'].lower()}"
            ),
            "SAGEMAKER_REGION": account.region,
            "S3_ENDPOINT_URL": account.environment["AWS_ENDPOINT_URL"],
            "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        }
        made = job_environment(
            account, {key: paths.rewrite(value) for key, value in own.items()}, fixed
        )
        made["PATH"] = os.pathsep.join([os.path.dirname(self._python), made["PATH"]])
        return made


def container_paths(host: Host, request: JsonObject) -> ContainerPaths:
    """Return the mapping of a request's paths to a host's directory."""
    checkpoints = request.get("CheckpointConfig", {}).get("LocalPath")
    return ContainerPaths.covering(
        host.directory,
        [checkpoints] if checkpoints else [],
        isolated=isolation.need(request) is not None,
    )
