"""Results of jobs that are kept for others that would do the same; AWS has nothing like it.

``orchestrate run --watch`` gives the accounts of its runs one folder for them, so that a job runs
again only where something that it reads has changed: its request, the objects below each S3 URI in
it, or the folder of its stand-in. Whatever else a script reads is not seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from orchestration.local.account import storage
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.account.storage import Location
from orchestration.local.sagemaker.hosts.cluster import Host
from orchestration.local.sagemaker.jobs.lifecycle import Job

_URI: Final = re.compile(r's3://[^\s"]+')
USED: Final = "used"
"""The folder with an empty file for each job that did not run."""


class Results:
    """The kept results of one job: what its hosts left in their directories."""

    def __init__(self, job: Job, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._name = job.name
        self._cache = job.account.job_cache
        self._place: Path | None = None
        if self._cache is not None and not _reads_a_file_system(job.request):
            self._place = self._cache / _key(job)

    def restored(self) -> bool:
        """Put them into the directories of the hosts, if there are any."""
        if self._place is None or self._cache is None or not self._place.exists():
            return False
        for host in self._hosts:
            _copy(self._place / host.directory.name, host.directory)
        used = self._cache / USED
        used.mkdir(exist_ok=True)
        (used / self._name).touch()
        return True

    def keep(self) -> None:
        """Keep what a job that has succeeded leaves in the directories of its hosts."""
        if self._place is None or self._place.exists():
            return
        partial = self._place.with_name(f"{self._name}.partial")
        for host in self._hosts:
            _copy(host.directory, partial / host.directory.name)
        try:
            partial.rename(self._place)
        except OSError:  # Another job that does the same was faster.
            shutil.rmtree(partial)


def _reads_a_file_system(request: JsonObject) -> bool:
    channels = request.get("InputDataConfig", [])
    return any("FileSystemDataSource" in channel["DataSource"] for channel in channels)


def _key(job: Job) -> str:
    stand_in = job.account.stand_ins.of(job.request)
    program = None if stand_in is None else (stand_in.command, _content(stand_in.directory))
    request = {name: value for name, value in job.request.items() if name != "Tags"}
    # A text inside of a text has its quotes escaped.
    text = json.dumps(request, sort_keys=True, default=str)
    uris = sorted(set(_URI.findall(text.replace("\\", " "))))
    read = {uri: list(_objects(Location.parse(uri, job.caller))) for uri in uris}
    return hashlib.sha256(json.dumps([text, program, read]).encode()).hexdigest()


def _objects(prefix: Location) -> Iterator[tuple[str, str | None]]:
    """Yield the objects below a prefix, and the digests of their contents."""
    try:
        found = storage.objects(prefix)
    except ServiceError:
        return  # What may not be read fails the job, which is not kept then.
    for each in found:
        yield each.key, storage.etag(prefix.at(each.key))


def _content(directory: str | None) -> list[tuple[str, str]]:
    root = Path(directory or ".")
    files = storage.files(root) if directory else ()
    return [
        (file.relative_to(root).as_posix(), hashlib.sha256(file.read_bytes()).hexdigest())
        for file in files
    ]


def _copy(source: Path, target: Path) -> None:
    """Copy a directory over another one; nobody changes the files of a job that has ended."""

    def place(file: str, copy: str) -> None:
        Path(copy).unlink(missing_ok=True)
        try:
            os.link(file, copy, follow_symlinks=False)
        except OSError:  # on another file system
            shutil.copy2(file, copy, follow_symlinks=False)

    shutil.copytree(source, target, symlinks=True, copy_function=place, dirs_exist_ok=True)
