"""Rules of requests that AWS documents in words and that botocore's models do not carry.

They are merged into the models, so that whatever reads a shape knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# What is required, and the length: botocore 1.43's description of each member, and
# https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html.
# The source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
# (both November 2026). An entry without them fails in an answer of status 200.
_EVENTS: Final = {
    "PutEventsRequestEntry": {
        "required": ["Detail", "DetailType", "Source"],
        "members": {"DetailType": {"max": 128}, "Source": {"pattern": r"(?!aws\.)[\s\S]*"}},
    }
}

SHAPES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {"events": _EVENTS}
"""By service and shape: the traits that its model lacks."""
