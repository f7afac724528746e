"""An `/opt/ml` of its own for a process: a mount namespace in which that path is its directory.

`python -P opt_ml.py DIRECTORY COMMAND...` replaces itself with the command, which sees DIRECTORY as
`/opt/ml`. Nothing is created or changed outside the namespace, which ends with its last process.

Only the standard library: the leash, which runs this for every job, must start fast.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

OPT_ML = Path("/opt/ml")
SWITCH = "ORCHESTRATION_LOCAL_NAMESPACES"
"""An environment variable: `off` makes all processes see this machine's `/opt/ml`."""

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_SLAVE = 1 << 19


@functools.cache
def can_be_own() -> bool:
    """Return whether a process can get an `/opt/ml` of its own on this machine."""
    if sys.platform != "linux" or os.environ.get(SWITCH, "").lower() == "off":
        return False
    # Some systems let a process make the namespace but not mount in it, so try all of it.
    with tempfile.TemporaryDirectory(prefix="opt-ml-") as directory:
        probe = [sys.executable, "-P", "-S", __file__, directory]
        write = ["/bin/sh", "-c", f": > {OPT_ML}/probe"]
        ended = subprocess.run([*probe, *write], cwd=directory, capture_output=True, check=False)
        return ended.returncode == 0 and Path(directory, "probe").exists()


def enter(directory: str) -> None:
    """Move this process, which has one thread, to where `directory` is `/opt/ml`.

    Raises `OSError` where the system does not allow it.
    """
    working = os.getcwd()
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare(libc)
    # Mounts made here stay here; those of the machine still come and go.
    _mount(libc, "none", "/", _MS_REC | _MS_SLAVE)
    if not OPT_ML.is_dir():
        _cover_opt(libc)
        OPT_ML.mkdir()
    _mount(libc, directory, str(OPT_ML), _MS_BIND | _MS_REC)
    os.chdir(working)


def _unshare(libc: ctypes.CDLL) -> None:
    if libc.unshare(_CLONE_NEWNS) == 0:
        return
    if ctypes.get_errno() != errno.EPERM:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a user namespace")
    # The user stays the same; the capabilities of the namespace end when the command starts.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _cover_opt(libc: ctypes.CDLL) -> None:
    """Cover /opt with an empty directory, and show in it everything that /opt has."""
    opt = OPT_ML.parent
    # The working directory stays the covered one.
    os.chdir(opt)
    entries = [entry for entry in os.scandir(".") if entry.name != OPT_ML.name]
    _mount(libc, "tmpfs", str(opt), 0, kind="tmpfs", options="mode=755")
    for entry in entries:
        shown = opt / entry.name
        if entry.is_symlink():
            shown.symlink_to(os.readlink(entry.name))
            continue
        if entry.is_dir():
            shown.mkdir()
        else:
            shown.touch()
        _mount(libc, entry.name, str(shown), _MS_BIND | _MS_REC)


def _mount(
    libc: ctypes.CDLL, source: str, target: str, flags: int, *, kind: str = "", options: str = ""
) -> None:
    words = [os.fsencode(word) if word else None for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) if options else None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {source} on {target}: {os.strerror(number)}")


def main(arguments: list[str]) -> None:
    """Become the command, with an `/opt/ml` of its own."""
    directory, *command = arguments
    enter(directory)
    os.execvp(command[0], command)  # noqa: S606  (the command is a list of words)


if __name__ == "__main__":
    main(sys.argv[1:])
