"""The logs of jobs in CloudWatch: a stream for each host."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from orchestration.execution.reading.job_logs import LOG_GROUPS
from orchestration.runs.asking import asking
from orchestration.runs.jobs import Job

_MOST: Final = 10_000
"""https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html"""
_STARTED: Final = re.compile(r"-\d{10,}$")
"""The time of its start at the end of a stream's name."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A log stream of a job."""

    job: str
    group: str
    name: str

    @property
    def host(self) -> str:
        """``algo-1`` of ``digits-train-0a1b2c3d4e5f/algo-1-1769212800``.

        A training job of a search has its own name before it.
        """
        job, _, host = self.name.partition("/")
        own = _STARTED.sub("", host)
        return own if job == self.job else f"{job}/{own}"


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a log."""

    at: datetime.datetime
    message: str


class Logs:
    """Readers of log streams, each of which goes on where it stopped."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._tokens: dict[Stream, str] = {}

    def streams(self, job: Job) -> list[Stream]:
        """Return the streams of a job; none before its containers have started."""
        _, group, following = LOG_GROUPS[f"Describe{job.kind.word}Job"]
        pages = self._client.get_paginator("describe_log_streams").paginate(
            logGroupName=group, logStreamNamePrefix=f"{job.name}{following}"
        )
        with asking(f"the log of {job.name}"):
            try:
                return [
                    Stream(job.name, group, stream["logStreamName"])
                    for page in pages
                    for stream in page["logStreams"]
                ]
            except self._client.exceptions.ResourceNotFoundException:
                return []

    def read(self, stream: Stream, *, most: int | None = None) -> list[Event]:
        """Return what was logged since the last time.

        The first time: everything, or the last ``most`` lines.
        """
        with asking(f"the log of {stream.job}"):
            if most is not None and stream not in self._tokens:
                return self._last(stream, most)
            return list(self._onwards(stream))

    def _onwards(self, stream: Stream) -> Iterator[Event]:
        while True:
            token = self._tokens.get(stream)
            response = self._page(stream, token, startFromHead=True)
            yield from _events(response)
            # A page may be empty though more follow; the end says so by its token.
            self._tokens[stream] = response["nextForwardToken"]
            if response["nextForwardToken"] == token:
                return

    def _last(self, stream: Stream, most: int) -> list[Event]:
        response = self._page(stream, None, limit=min(max(1, most), _MOST))
        self._tokens[stream] = response["nextForwardToken"]
        found = _events(response)
        while len(found) < most:
            token = response["nextBackwardToken"]
            response = self._page(stream, token, limit=min(most - len(found), _MOST))
            found = [*_events(response), *found]
            if response["nextBackwardToken"] == token:
                break
        return found[len(found) - most :] if most < len(found) else found

    def _page(self, stream: Stream, token: str | None, **options: Any) -> Any:
        onwards = {} if token is None else {"nextToken": token}
        return self._client.get_log_events(
            logGroupName=stream.group, logStreamName=stream.name, **onwards, **options
        )


def _events(response: Any) -> list[Event]:
    return [
        Event(
            datetime.datetime.fromtimestamp(event["timestamp"] / 1000, datetime.UTC),
            event["message"].rstrip("\n"),
        )
        for event in response["events"]
    ]
