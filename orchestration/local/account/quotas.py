"""Service Quotas of SageMaker; moto knows those of VPC alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

from orchestration.catalog import training_types
from orchestration.local.account.protocol import JsonObject, Request, Service

USAGES: Final = (
    "endpoint usage",
    "processing job usage",
    "spot training job usage",
    "training job usage",
    "transform job usage",
)
_EVERY: Final = 1000.0
_PAGE: Final = 100
"""The most quotas on a page."""


class ServiceQuotas(Service):
    """The quotas of an account: each machine 1000 times, until `EmbeddedAws.provide` says less.

    AWS begins with other values, mostly 0 for accelerators. Nothing here keeps jobs within them.
    """

    name = "service-quotas"
    malformed = "IllegalArgumentException"

    def __init__(self) -> None:
        self._set: dict[str, float] = {}
        super().__init__(
            {
                "ListAWSDefaultServiceQuotas": lambda request: _page(
                    [_quota(name, _EVERY) for name in _names()], request
                ),
                "ListServiceQuotas": lambda request: _page(
                    [_quota(name, value) for name, value in sorted(self._set.items())], request
                ),
            }
        )

    def provide(self, quotas: Mapping[str, float]) -> None:
        """Set quotas by their names: `ml.p5.48xlarge for training job usage`."""
        self._set.update(quotas)

    def handles(self, request: Request) -> bool:
        """Return whether it is about SageMaker; moto answers for others."""
        return request.parameters.get("ServiceCode") == "sagemaker"


def _names() -> Iterator[str]:
    return (f"{name} for {usage}" for name in sorted(training_types()) for usage in USAGES)


def _quota(name: str, value: float) -> JsonObject:
    return {
        "ServiceCode": "sagemaker",
        "ServiceName": "Amazon SageMaker",
        "QuotaName": name,
        "QuotaCode": f"L-{sha256(name.encode()).hexdigest()[:8].upper()}",
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


def _page(quotas: list[JsonObject], request: JsonObject) -> JsonObject:
    start = int(request.get("NextToken", 0))
    end = start + min(int(request.get("MaxResults", _PAGE)), _PAGE)
    following = {"NextToken": str(end)} if end < len(quotas) else {}
    return {"Quotas": quotas[start:end], **following}
