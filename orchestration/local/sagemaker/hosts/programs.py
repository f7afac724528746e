"""The programs that hosts run: an image's own is unknown here, so a stand-in may take its place."""

from __future__ import annotations

from pathlib import Path

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.hosts.cluster import Host

NAME_ONE = (
    "the embedded AWS runs no containers; name a program of this machine that runs in its place: "
    "`local: {command: [python3, stand_in.py], directory: FOLDER}` of the stage"
)


def running(account: Account, request: JsonObject, place: str) -> JsonObject:
    """Return a job's request as it runs here; `place` is the member that holds its entry point."""
    stand_in = account.stand_ins.of(request)
    if stand_in is None:
        return request
    own = request.get(place, {})
    return {**request, place: {**own, "ContainerEntrypoint": list(stand_in.command)}}


def folder(account: Account, request: JsonObject, host: Host) -> Path:
    """Return the folder that a job's program is started in."""
    stand_in = account.stand_ins.of(request)
    if stand_in is None or stand_in.directory is None:
        return host.directory
    return Path(stand_in.directory)
