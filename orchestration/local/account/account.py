"""An embedded AWS account: the state that its services share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock
from orchestration.local.account.faults import Faults
from orchestration.local.account.networks import Networks
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.recorder import Recorder
from orchestration.local.account.stand_ins import StandIns
from orchestration.local.processes.children import Children


@dataclass
class Account:
    """One account in one region: its time, its files, its faults and its child processes.

    It knows no service: each service is handed an account, and whatever it needs of another
    service.
    """

    region: str
    clock: Clock
    directory: Path
    environment: Mapping[str, str]
    """The environment of child processes, whose AWS clients reach this account only."""
    devices_per_host: int = 1
    """Accelerators of an accelerated instance, as its processes see them."""
    job_cache: Path | None = None
    """The folder with results of jobs, which are used again; ``None``: each job runs."""
    recorder: Recorder = field(default_factory=Recorder)
    activity: Activity = field(default_factory=Activity)
    faults: Faults = field(default_factory=Faults)
    children: Children = field(default_factory=Children)
    stand_ins: StandIns = field(default_factory=StandIns)
    id: str = ACCOUNT_ID
    networks: Networks = field(init=False)

    def __post_init__(self) -> None:
        self.networks = Networks(self.region)

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account."""
        return f"arn:aws:{service}:{self.region}:{self.id}:{resource}"
