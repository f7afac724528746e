"""A run as plain lines: one for each change of a stage, of a job and of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from orchestration.cli.commands.deployed.wording import dollars, duration, figures

if TYPE_CHECKING:
    from orchestration.runs import Snapshot


class Changes:
    """The changes since the snapshot before."""

    def __init__(self) -> None:
        self._said: Mapping[str, str] = {}

    def of(self, snapshot: Snapshot) -> Iterator[str]:
        """Yield a line for each of them, and how the run ended."""
        now = dict(_told(snapshot))
        at = f"{snapshot.at:%H:%M:%S}"
        for subject, words in now.items():
            if self._said.get(subject) != words:
                yield f"{at}  {subject}: {words}"
        self._said = now
        if snapshot.state != "running":
            end = f"{snapshot.state} after {duration(snapshot.elapsed_s)}, {dollars(snapshot)}"
            yield f"{at}  run {snapshot.run} of {snapshot.pipeline}: {end}"


def _told(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for stage in snapshot.stages:
        if stage.state != "waiting":
            yield stage.name, stage.state
        for job in stage.jobs:
            reason = f": {job.reason}" if job.reason else ""
            yield f"{stage.name}, {job.name}", f"{job.phase}{reason}"
            if job.metrics:
                yield f"{stage.name}, metrics of {job.name}", figures(job.metrics)
