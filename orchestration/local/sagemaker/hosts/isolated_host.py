"""The first process of an isolated host: it sets up a container's surroundings.

`python -P isolated_host.py SETTINGS COMMAND...`, started by :mod:`.isolation` in namespaces of its
own: network, mounts, processes, host name. What it mounts and writes is seen by this host alone;
everything ends with this process. SETTINGS is a JSON object:

- `name`: the host's name; `addresses`: of all hosts, by name;
- `directory`: what the host sees as `/opt/ml`; `ready`: a file that says that the network is up;
- `key`: the private key of the job, or null where nobody logs in. The public one is beside it.

Only the standard library: the interpreter may be that of another environment.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NETWORK_S = 600.0
_POLL_S = 0.02

_SSHD = """\
Port 22
HostKey /etc/ssh/job_key
AuthorizedKeysFile /etc/ssh/job_key.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM yes
UseDNS no
MaxStartups 100
LogLevel ERROR
"""
_SSH = """\
Host *
  IdentityFile /etc/ssh/job_key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""
# As in AWS's containers, a login reads /etc/environment, where the toolkit of a worker leaves what
# the processes that mpirun starts there need.
_PAM = "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_env.so\n"


def main(settings: Mapping[str, Any], command: list[str]) -> int:
    """Run the command as if it were alone on its host and return its exit status."""
    # The network namespace is ready once the outside has moved an interface into it.
    socket.sethostname(settings["name"])
    _surround(settings)
    _await(Path(settings["ready"]))
    # Everybody gets SIGTERM from outside: this process waits for the command's end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(command, preexec_fn=_listen_to_sigterm)
    while True:
        # As the first process it is the parent of all orphans, too.
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def _listen_to_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _surround(settings: Mapping[str, Any]) -> None:
    directory = Path(settings["directory"])
    _mount("proc", "/proc", "-t", "proc")
    for place in ("/etc", "/opt"):
        _lay_over(place, directory / "layers" / place.strip("/"))
    _mount("tmpfs", "/run", "-t", "tmpfs")
    Path("/run/sshd").mkdir()
    Path("/opt/ml").mkdir(exist_ok=True)
    _mount(str(directory), "/opt/ml", "--bind")
    hosts = [f"{address} {name}" for name, address in settings["addresses"].items()]
    _write("/etc/hosts", "\n".join(["127.0.0.1 localhost", *hosts, ""]))
    _write("/etc/hostname", settings["name"] + "\n")
    _write("/etc/resolv.conf", "")
    _write("/etc/environment", "")
    if settings["key"]:
        _open_to_ssh(Path(settings["key"]), Path(os.environ["HOME"]))


def _open_to_ssh(key: Path, home: Path) -> None:
    public = Path(f"{key}.pub").read_text()
    _write("/etc/ssh/job_key", key.read_text(), mode=0o600)
    _write("/etc/ssh/job_key.pub", public)
    _write("/etc/ssh/sshd_config", _SSHD)
    _write("/etc/ssh/ssh_config", _SSH)
    _write("/etc/pam.d/sshd", _PAM)
    # The toolkit's own client (paramiko) reads no configuration, only these.
    _write(str(home / ".ssh" / "id_rsa"), key.read_text(), mode=0o600)


def _lay_over(place: str, layer: Path) -> None:
    """Lay a private layer over a directory, which disappears with the host."""
    layer.mkdir(parents=True)
    _mount("tmpfs", str(layer), "-t", "tmpfs")
    for name in ("upper", "work"):
        (layer / name).mkdir()
    options = f"lowerdir={place},upperdir={layer}/upper,workdir={layer}/work"
    _mount("overlay", place, "-t", "overlay", "-o", options)


def _mount(what: str, where: str, *options: str) -> None:
    subprocess.run(["mount", *options, what, where], check=True)  # noqa: S607  (as root's PATH has it)


def _write(path: str, text: str, mode: int = 0o644) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    # Some are links out of the layer: /etc/resolv.conf to what systemd keeps in /run.
    file.unlink(missing_ok=True)
    file.touch(mode=mode)
    file.write_text(text)


def _await(ready: Path) -> None:
    end = time.monotonic() + _NETWORK_S
    while not ready.exists():
        if time.monotonic() > end:
            sys.exit(f"the network of this host was not ready within {_NETWORK_S:g} s")
        time.sleep(_POLL_S)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
