"""The subnets and security groups of an account."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from orchestration.local.account.protocol import ACCOUNT_ID


class Networks:
    """Subnets with their zones, and security groups: provided ones, and those of moto's EC2."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._zones: dict[str, str] = {}
        self._groups: set[str] = set()

    def provide(self, subnets: Iterable[str], groups: Iterable[str]) -> None:
        """Add subnets, in the region's first zone, and security groups."""
        self._zones |= {subnet: f"{self._region}a" for subnet in subnets}
        self._groups |= set(groups)

    def zone(self, subnet: str) -> str | None:
        """Return the availability zone of a subnet, or None if the subnet does not exist."""
        for zone, subnets in self._ec2("subnets").items():
            if subnet in subnets:
                return str(zone)
        return self._zones.get(subnet)

    def has_group(self, group: str) -> bool:
        """Return whether a security group exists."""
        return group in self._groups or any(
            group in groups for groups in self._ec2("groups").values()
        )

    def _ec2(self, resources: str) -> Mapping[str, Any]:
        # Loading EC2 takes two seconds, and before its first call nobody can know its ids.
        if "moto.ec2.models" not in sys.modules:
            return {}
        from moto.ec2.models import ec2_backends

        backend: Any = ec2_backends[ACCOUNT_ID][self._region]
        return dict(getattr(backend, resources))
