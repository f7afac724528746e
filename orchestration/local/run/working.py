"""The progress of a run's jobs, while it goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """A job under way."""

    stage: str
    job: str
    phase: str
    """The secondary status of a training job, ``Training``; else its status."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last values of its metrics."""
    checkpoint: str | None = None
    """The name of its newest checkpoint in S3."""
    line: str = ""
    """The last line of its log."""


OnWork = Callable[[Working], None]
"""Is called, by a thread of its own, with each job that got further."""


@contextmanager
def following_jobs(aws: EmbeddedAws, tokens: Sequence[str], on_work: OnWork) -> Iterator[None]:
    """Tell how far the jobs of a run are, by the tokens that it may have, until the block ends."""
    ended = threading.Event()

    def follow() -> None:
        known: dict[str, Working] = {}
        try:
            while not ended.wait(_LOOK_EVERY_S):
                for working in _look(aws, tokens, known):
                    known[working.job] = working
                    on_work(working)
        except Exception:
            # Jobs run on: a display that fails must not end them.
            _log.exception("how far the jobs are can't be told; it is not asked again")

    thread = threading.Thread(target=follow, name="following-jobs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _look(
    aws: EmbeddedAws, tokens: Sequence[str], known: Mapping[str, Working]
) -> Iterator[Working]:
    for job in aws.progress():
        tags = {tag["Key"]: tag["Value"] for tag in job["tags"]}
        if tags.get("orchestration:run") not in tokens:
            continue
        before = known.get(job["name"])
        now = Working(
            stage=tags.get("orchestration:stage", ""),
            job=job["name"],
            phase=job["phase"],
            metrics={**({} if before is None else before.metrics), **job["metrics"]},
            checkpoint=job["checkpoint"] or (None if before is None else before.checkpoint),
            line=job["line"],
        )
        if now != before:
            yield now
