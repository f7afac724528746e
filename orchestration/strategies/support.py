"""Which strategy runs where: rows of data with their sources."""

from __future__ import annotations

from typing import Final

SMDDP_INSTANCES: Final = (
    "ml.p3.16xlarge",
    "ml.p3dn.24xlarge",
    "ml.p4d.24xlarge",
    "ml.p4de.24xlarge",
)
"""Instance types that SMDDP runs on. Source: SM_DATAPARALLEL_SUPPORTED_INSTANCE_TYPES of the
SageMaker Python SDK 2.257.6, which refused every other type up to 2.221.0 and no longer looks
since; read 2026-11."""

ACCELERATORS: Final = frozenset(
    [
        *("p2", "p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en"),
        *("p6-b200", "p6-b300", "p6e-gb200"),
        *("g4dn", "g5", "g6", "g6e", "g7e"),
        *("trn1", "trn1n", "trn2", "trn2u"),
    ]
)
"""Families with GPUs or Trainium, where the toolkit starts one process per device. Source: Amazon
SageMaker pricing page and instance documentation, read 2026-11."""


def instance_family(instance_type: str) -> str:
    """The family of an instance type.

    >>> instance_family("ml.p4d.24xlarge")
    'p4d'
    """
    return instance_type.removeprefix("ml.").partition(".")[0]
