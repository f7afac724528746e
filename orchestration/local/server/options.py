"""The settings of an embedded AWS."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The settings of an embedded AWS, as :class:`~orchestration.local.EmbeddedAws` has them."""

    directory: str
    region: str = "us-east-1"
    time_scale: float = 0.02
    devices_per_host: int = 1
    enforce_iam: bool = False
    job_cache: str | None = None
