"""Names for what an event tells, and where it stands in events of EventBridge.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html,
https://docs.aws.amazon.com/sagemaker/latest/dg/automating-sagemaker-with-eventbridge.html,
https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

Kind = Literal["s3", "model_package", "pipeline", "event"]

_EVERY: Final = {"id": "<id>", "time": "<time>"}
_NAMED: Final[Mapping[Kind, Mapping[str, str]]] = {
    "s3": {
        "object_uri": "s3://<detail.bucket.name>/<detail.object.key>",
        "bucket": "<detail.bucket.name>",
        "key": "<detail.object.key>",
        "size": "<detail.object.size>",
        "etag": "<detail.object.etag>",
        **_EVERY,
    },
    "model_package": {
        "model_package": "<detail.ModelPackageArn>",
        "group": "<detail.ModelPackageGroupName>",
        "version": "<detail.ModelPackageVersion>",
        "status": "<detail.ModelApprovalStatus>",
        **_EVERY,
    },
    "pipeline": {"run": "<detail.name>", **_EVERY},
}
NUMBERS: Final = frozenset({"size", "version"})
"""Named values that are numbers; all others are text."""
_ALWAYS: Final = ("id", "time", "source", "account", "region", "detail-type")
"""The fields of every event that are text."""
_PATH: Final = re.compile(r"detail(\.[A-Za-z0-9_-]+)+")


def named(kind: Kind) -> Mapping[str, str]:
    """Return the names of a kind's values; of any event there are paths instead."""
    return _NAMED.get(kind, {})


def template(kind: Kind, name: str) -> str | None:
    """Return the text of a value, with fields of the event in it; ``None``: there is no such."""
    if kind != "event":
        return _NAMED[kind].get(name)
    path = name.removeprefix("$.")
    return f"<{path}>" if path in _ALWAYS or _PATH.fullmatch(path) else None


def field(text: str) -> str | None:
    """Return the path within ``detail`` that a text is; ``None`` where it is something else."""
    match = re.fullmatch(r"<detail\.([^<>]+)>", text)
    return None if match is None else match[1]
