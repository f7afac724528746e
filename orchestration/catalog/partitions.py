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
