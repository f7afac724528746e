"""Model package groups of other accounts, and the resource policies that they need.

Nobody but their owner can read or change those policies, so whoever deploys is told what they need:
https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-deploy-xaccount.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_VERSIONS: Final = re.compile(r"(arn:[\w-]+:sagemaker:[\w-]+:)(\d{12}):model-package/([^/*]+)/\*")


def told(policy: Mapping[str, Any], principal: str, account: str) -> Iterator[str]:
    """Yield the policy that each group of another account needs, for those of a role's ``policy``.

    It mirrors that one: both sides must allow the same.
    """
    actions: dict[str, set[str]] = {}
    for statement in policy["Statement"]:
        for resource in statement["Resource"]:
            found = _VERSIONS.fullmatch(resource)
            if found is not None and found[2] != account:
                actions.setdefault(resource, set()).update(statement["Action"])
    for versions, allowed in sorted(actions.items()):
        group = versions.replace(":model-package/", ":model-package-group/").removesuffix("/*")
        owner = group.split(":")[4]
        needed = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "Use",
                    "Effect": "Allow",
                    "Principal": {"AWS": principal},
                    "Action": sorted(allowed),
                    "Resource": [group, versions],
                }
            ],
        }
        yield (
            f"model group {group.rpartition('/')[2]} belongs to account {owner}, whose policies "
            "can't be read here; it needs this one (aws sagemaker put-model-package-group-policy), "
            "and the versions' buckets, images and keys must let the models' role in: "
            f"{json.dumps(needed)}"
        )
