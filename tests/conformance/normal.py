"""What two runs are compared by: their calls and the account, run identity aside."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestration.cleanup import MACHINE

READING = ("Describe", "List", "Get", "Head")
_GENERATED = re.compile(
    r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12}|fs-[0-9a-f]+|dra-[0-9a-f]+"
    r'|(?:task|loc|exec)-[0-9a-f]+)\b|(?<="/)[0-9a-f]{8}(?=/)|(?<=-\d{3}-)[0-9a-f]{8}\b'
)
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.+Z-]+")
# Of a body that may name its run.
_CHECKSUM = re.compile(r'"ChecksumCRC32": "[^"]*"')
# The toolkit reads a script's last words in pieces, and breaks lines where a piece happens to end.
_TOLD = re.compile(r"AlgorithmError.*?exit code")
_BREAKS = re.compile(r"(?:\\+n|[\s:])+")
JOURNAL = "/.journal/"
"""In keys of what the direct driver keeps for itself."""
ORCHESTRATORS = ("states", "stepfunctions", "iam", "sts", "logs")


def _unmarked(value: Any) -> Any:
    """Leave out the tag with the state machine: it is part of a run's identity."""
    if isinstance(value, Mapping):
        return {key: _unmarked(item) for key, item in value.items()}
    if isinstance(value, list):
        items = (item for item in value if not (isinstance(item, Mapping) and _marks(item)))
        return [_unmarked(item) for item in items]
    return value


def _marks(tag: Mapping[str, Any]) -> bool:
    return tag.get("Key") == MACHINE


def anonymous(value: Any) -> str:
    """A request as text, with what differs from run to run replaced by what it is."""
    text = json.dumps(_unmarked(value), sort_keys=True, ensure_ascii=False)
    text = _TOLD.sub(lambda match: _BREAKS.sub(" ", match[0]), text)
    text = _CHECKSUM.sub('"ChecksumCRC32": "<id>"', text)
    return _TIMES.sub("<time>", _GENERATED.sub("<id>", text))


LOOKS = ("ListTrainingJobs", "ListProcessingJobs")
"""The last look of a run on Airflow, at jobs that still run."""


def own(call: Any) -> bool:
    """Return whether a call is an orchestrator's own business."""
    if call.operation in LOOKS:
        return True
    key = str(call.request.get("Key") or call.request.get("Prefix") or "")
    return call.service in ORCHESTRATORS or JOURNAL in key


def changes(calls: Iterable[Any]) -> Counter[str]:
    """The calls that change the account, however often each was sent."""
    return Counter(
        f"{call.service}:{call.operation} {anonymous(call.request)} -> {call.error_code}"
        for call in calls
        if not call.operation.startswith(READING) and not own(call)
    )


def questions(calls: Iterable[Any]) -> set[str]:
    """The calls that only read; polls are sent as often as the clock says."""
    return {
        f"{call.service}:{call.operation} {anonymous(call.request)}"
        for call in calls
        if call.operation.startswith(READING) and not own(call)
    }


def account(state: Mapping[str, Any]) -> Counter[str]:
    """The account afterwards, but for clocks, what they measure, and random names."""
    compared = {service: _unmarked(state[service]) for service in ("sagemaker", "fsx", "s3")}
    return Counter(anonymous(leaf) for leaf in _leaves(compared, ()))


_MEASURED = re.compile(r"Time$|TimeInSeconds$|^SecondaryStatusTransitions$|^Timestamp$|^MountName$")


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[list[Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if JOURNAL in key:
                continue
            # An archive holds the times of its files.
            clocked = _MEASURED.search(key) or (path and path[-1].endswith(".tar.gz"))
            if not clocked:
                yield from _leaves(item, (*path, key))
            else:
                yield [*path, key]
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, path)
    else:
        yield [*path, value]
