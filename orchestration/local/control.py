"""The paths at which an embedded AWS is driven and looked into, beside the AWS API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orchestration.local.protocol import Answer
from orchestration.local.records import Fault
from orchestration.local.snapshot import snapshot

if TYPE_CHECKING:
    from orchestration.local.wiring import Account

PREFIX = "/_embedded/"


def answer(account: Account, path: str, body: bytes) -> Answer:
    """The answer to a request below `/_embedded/`."""
    what = path.removeprefix(PREFIX)
    data: Any
    if what == "calls":
        data = [call.to_json() for call in account.recorder.calls()]
    elif what == "state":
        data = snapshot(account)
    elif what == "faults":
        account.faults.inject(Fault.from_json(json.loads(body)))
        data = {}
    elif what.startswith("logs/"):
        data = {"logs": account.logs(what.removeprefix("logs/"))}
    else:
        return Answer(404, b'{"message": "unknown path"}', _TYPE)
    return Answer(200, json.dumps(data, default=str).encode(), _TYPE)


_TYPE = (("Content-Type", "application/json"),)
