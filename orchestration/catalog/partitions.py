"""The partitions of AWS, by the beginnings of their regions' names.

https://docs.aws.amazon.com/general/latest/gr/rande.html (November 2026); those of isolated regions
are left out, as elsewhere in this package.
"""

from __future__ import annotations

from typing import Final

_PARTITIONS: Final = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}


def partition_of(region: str | None) -> str:
    """Return the partition of a region.

    >>> partition_of("us-gov-west-1")
    'aws-us-gov'
    """
    partitions = (name for start, name in _PARTITIONS.items() if (region or "").startswith(start))
    return next(partitions, "aws")


def via_service(name: str, region: str) -> frozenset[str]:
    """Return the values of ``kms:ViaService`` for a service in a region.

    In China they end as endpoints do there, which AWS documents by no example: both spellings are
    returned, and mean the same service. Principals (``sagemaker.amazonaws.com``) have one spelling
    everywhere, but those of EC2 and EMR, which no pipeline hands a role.

    >>> sorted(via_service("s3", "cn-north-1"))
    ['s3.cn-north-1.amazonaws.com', 's3.cn-north-1.amazonaws.com.cn']
    """
    value = f"{name}.{region}.amazonaws.com"
    return frozenset([value, f"{value}.cn"] if partition_of(region) == "aws-cn" else [value])
