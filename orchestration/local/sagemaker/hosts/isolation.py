"""Isolated hosts (Linux namespaces) for jobs that cannot share this machine's network.

The toolkit starts an SSH daemon on port 22 of every host of an mpirun job, takes keys from root's
home, looks for a host's processes by their names, and has every process read `/opt/ml`; TensorFlow
has fixed ports. So each host of such a job gets its own network, file system view, process numbers
and name (`algo-1`, as on SageMaker) by namespaces, like a container without an image. That takes
root on Linux. All other jobs run as ordinary processes, with an `/opt/ml` of their own if possible.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.local.sagemaker.hosts.cluster import Cluster, Host
from orchestration.local.sagemaker.outcomes import JobFailed

SSHD = "/usr/sbin/sshd"
_HERE = Path(__file__).parent
_OVER_MPIRUN = (
    "sagemaker_mpi_enabled",
    "sagemaker_distributed_dataparallel_enabled",
    "sagemaker_pytorch_ddp_enabled",
)
_FIXED_PORTS = (
    "sagemaker_parameter_server_enabled",
    "sagemaker_multi_worker_mirrored_strategy_enabled",
)
_NAMESPACES = ("unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child")


@dataclass(frozen=True)
class Need:
    """The reason why a job needs isolated hosts."""

    why: str
    over_mpirun: bool


def need(request: Mapping[str, Any]) -> Need | None:
    """Return why a training job needs isolated hosts; None if it does not."""
    if "ContainerEntrypoint" in request.get("AlgorithmSpecification", {}):
        return None
    hyperparameters = request.get("HyperParameters", {})
    for key in _OVER_MPIRUN:
        if _is_on(hyperparameters.get(key)):
            return Need(f"{key} starts mpirun", over_mpirun=True)
    for key in _FIXED_PORTS:
        if _is_on(hyperparameters.get(key)):
            return Need(f"{key} gives every host the same ports", over_mpirun=False)
    return None


def missing(reason: Need) -> str | None:
    """Return what this machine lacks for isolated hosts; None if it has everything."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "the hosts of such a job are Linux namespaces, made by root"
    programs = ["unshare", "nsenter", "mount", "ip"]
    if reason.over_mpirun:
        programs += ["mpirun", "orted", "ssh", "ssh-keygen", SSHD]
    lacking = [name for name in programs if shutil.which(name) is None]
    if reason.over_mpirun and importlib.util.find_spec("mpi4py") is None:
        lacking.append("mpi4py")
    if lacking:
        return f"{', '.join(lacking)} not installed; `make setup-mpi` does it"
    return None if _can_make_namespaces() else "this root may not make namespaces (CAP_SYS_ADMIN)"


@functools.cache
def _can_make_namespaces() -> bool:
    command = [*_NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", "/opt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _is_on(text: object) -> bool:
    try:
        return json.loads(str(text).lower()) is True
    except ValueError:
        return False


class Isolation:
    """The isolated hosts of one job."""

    def __init__(self, cluster: Cluster, directory: Path, reason: Need) -> None:
        lacking = missing(reason)
        if lacking:
            raise JobFailed(
                f"ClientError: this machine cannot run the job: {reason.why}; {lacking}"
            )
        self._cluster = cluster
        self._directory = directory
        self._ready = directory / "network-is-up"
        self._key = directory / "key" if reason.over_mpirun else None
        if self._key:
            words = ["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-C", "job", "-f", str(self._key)]
            subprocess.run(words, check=True)

    def command(self, host: Host, command: list[str]) -> list[str]:
        """Return the command that runs another one on its own host."""
        settings = {
            "name": host.address,
            "addresses": {other.address: _ip(other) for other in self._cluster.hosts},
            "directory": str(host.directory),
            "ready": str(self._ready),
            "key": str(self._key) if self._key else None,
        }
        first = [sys.executable, "-P", str(_HERE / "isolated_host.py"), json.dumps(settings)]
        # The process id survives `exec`, so the network finds the host by it.
        tell = 'echo $$ > "$0" && exec "$@"'
        return ["/bin/sh", "-c", tell, str(_pid_file(host)), *_NAMESPACES, *first, *command]

    def environment(self, host: Host) -> dict[str, str]:
        """Return the entries that differ in the environment of an isolated host."""
        home, temporary = host.directory / "home", host.directory / "tmp"
        for directory in (home, temporary):
            directory.mkdir()
        return {
            "HOME": str(home),
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMPI_MCA_orte_tmpdir_base": str(temporary),
        }

    def network(self, port: int) -> list[str]:
        """Return the command of the hosts' network; `port` is that of the embedded AWS."""
        settings = {
            "pid_files": [str(_pid_file(host)) for host in self._cluster.hosts],
            "addresses": [_ip(host) for host in self._cluster.hosts],
            "port": port,
            "ready": str(self._ready),
        }
        return [sys.executable, "-P", str(_HERE / "isolated_network.py"), json.dumps(settings)]


def _pid_file(host: Host) -> Path:
    return host.directory / "pid"


def _ip(host: Host) -> str:
    return f"10.0.{host.index // 250}.{host.index % 250 + 1}"
