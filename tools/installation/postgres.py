"""A PostgreSQL cluster of its own, on the loopback, in a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.installation.processes import free_port

USER = "airflow"
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""It need not survive the machine, so it need not wait for its disk."""


class Postgres:
    """A cluster; `start` it, and `stop` it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = binaries()
        self.port = free_port()

    def start(self) -> None:
        """Make the cluster, start it, and create the database."""
        self._folder.mkdir(parents=True)
        # PostgreSQL refuses to run as root, and needs the way to its folder.
        for folder in (self._folder, *self._folder.parents[:-1]):
            if os.geteuid() == 0 and not folder.stat().st_mode & 0o001:
                folder.chmod(folder.stat().st_mode | 0o011)
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = [f"-c {name}={value}" for name, value in _SETTINGS.items()]
        options += [f"-p {self.port}", "-c listen_addresses=127.0.0.1"]
        options += [f"-c unix_socket_directories={self._folder}", "-c max_connections=200"]
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", data, "-l", log, "-w", "-o", " ".join(options), "start")
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "airflow")

    def stop(self) -> None:
        """Stop the cluster at once."""
        data = self._folder / "data"
        if (data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")

    def url(self, driver: str) -> str:
        """Return the address of the database, for SQLAlchemy."""
        return f"postgresql+{driver}://{USER}@127.0.0.1:{self.port}/airflow"

    def rows(self, query: str) -> list[list[str]]:
        """Return what a query selects, as text."""
        command = ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", "airflow"]
        output = self._run(*command, "-AtF", "\t", "-c", query)
        return [line.split("\t") for line in output.splitlines()]

    def _run(self, program: str, *arguments: str) -> str:
        command = [str(self._bin / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        # pg_ctl hands its streams to the server, which would keep a pipe open.
        streams = subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE
        done = subprocess.run(
            command, check=False, stdout=streams, stderr=streams, text=True, cwd=self._folder
        )
        if done.returncode:
            sys.exit(f"{program} failed: {done.stderr or ''}")
        return done.stdout or ""


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs; Debian has them outside of the path."""
    if path := shutil.which("initdb"):
        return Path(path).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not folders:
        sys.exit("PostgreSQL is missing (initdb is neither on the path nor in /usr/lib/postgresql)")
    return folders[-1].parent
