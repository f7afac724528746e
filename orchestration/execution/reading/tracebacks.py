"""The end of a log: the traceback of the script that failed, and the last lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MOST_LINES: Final = 20
"""The lines shown of a log, besides a traceback that ends earlier."""
_TRACEBACK: Final = "Traceback (most recent call last):"
_CHAINED: Final = ("The above exception was the direct cause", "During handling of the above")
# A message may have several lines, and a collective's ends with the reason; without a rank in
# front, what follows it may be anything.
_MESSAGE_OF_RANK: Final = 20
_MESSAGE: Final = 10
_ENDS_MESSAGE: Final = re.compile(
    r"Traceback \(most recent call last\)|[WEIF]\d{4} \d\d:\d\d:\d\d|=====|\[rank\d+\]:|"
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|ErrorMessage |Command "
)
_OF_RANK: Final = re.compile(r"\[rank\d+\]:")
# What torchrun raises when a process of the script has failed; it says nothing of the reason.
_LAUNCHER: Final = re.compile(
    r'/torchrun"|torch/distributed/(run|launch)\.py"|torch/distributed/launcher/|ChildFailedError'
)
_FIRST: Final = "Root Cause (first observed failure):"
_RANK: Final = re.compile(r"^ +rank +: (\d+)", re.MULTILINE)
# The toolkit quotes the standard error of the script that failed, its traceback included:
# sagemaker_training/errors.py, 5.1.4.
_QUOTE_BEGINS: Final = 'ErrorMessage "'
_QUOTE_ENDS: Final = "Command "
# It strips what it reads of the standard error, where Python writes the marks below a line of code
# one by one: each then has a line of its own, below nothing (sagemaker_training/process.py, 5.1.4).
_MOVED_MARKS: Final = re.compile(r"[~^]+")


def end_of(lines: Sequence[str]) -> list[str]:
    """Return the script's last traceback and the last lines, without what only repeats it.

    The traceback of the launcher is left out, and so is the toolkit's quote if the lines hold
    what it quotes.
    """
    lines = [line for line in lines if not _MOVED_MARKS.fullmatch(line)]
    tracebacks = _tracebacks(lines)
    launcher = {at for each in tracebacks if _is_launcher(lines, each) for at in each[:-1]}
    quoted = _quoted(lines)
    scripts = [
        each for each in tracebacks if not _is_launcher(lines, each) and each[0] not in quoted
    ]
    hidden = launcher | (quoted if scripts else set())
    shown = [at for at in range(len(lines)) if at not in hidden]
    last = shown[-MOST_LINES:]
    if not scripts:
        return [lines[at] for at in last]
    failed = _with_causes(lines, _of_root_cause(lines, scripts))
    if failed[0] in last:
        return [lines[at] for at in last]
    rest = [at for at in last if at > failed[-1]]
    between = sum(failed[-1] < at < rest[0] for at in shown) if rest else 0
    elided = [f"… ({between} lines)"] if between else []
    return [*(lines[at] for at in failed), *elided, *(lines[at] for at in rest)]


def _tracebacks(lines: Sequence[str]) -> list[list[int]]:
    """Return the lines' numbers of each traceback, its exception included."""
    return [_traceback(lines, at) for at in range(len(lines)) if _TRACEBACK in lines[at]]


def _traceback(lines: Sequence[str], at: int) -> list[int]:
    """Return the numbers of a traceback's lines, without those of other ranks in between."""
    prefix, _, _ = lines[at].partition(_TRACEBACK)
    most = _MESSAGE_OF_RANK if _OF_RANK.search(prefix) else _MESSAGE
    found, exception = [at], 0
    for number in range(at + 1, len(lines)):
        if not lines[number].startswith(prefix):
            continue
        text = lines[number].removeprefix(prefix)
        # The exception is the first line that is not indented.
        is_after = exception > 0
        if is_after and (len(found) - exception >= most or _ENDS_MESSAGE.match(text)):
            break
        if is_after and text.startswith(_CHAINED):
            break
        found.append(number)
        if not is_after and not text[:1].isspace():
            exception = len(found)
    if exception and _is_launcher(lines, found[:exception]):
        return found[:exception]
    while exception and not lines[found[-1]].removeprefix(prefix).strip():
        found.pop()
    return found


def _is_launcher(lines: Sequence[str], traceback: Sequence[int]) -> bool:
    return any(_LAUNCHER.search(lines[at]) for at in traceback)


def _quoted(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines in which the toolkit quotes the script's standard error."""
    quoted: set[int] = set()
    inside = False
    for number, line in enumerate(lines):
        if line.startswith(_QUOTE_BEGINS):
            inside = not line.rstrip().endswith('"')
        elif line.startswith(_QUOTE_ENDS):
            inside = False
        if inside:
            quoted.add(number)
    return quoted


def _of_root_cause(
    lines: Sequence[str], tracebacks: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]]:
    """Return the tracebacks of the rank that torchrun saw failing first, if it tells one.

    The other ranks of the host fail because that one is gone.
    """
    summary = "\n".join(lines).rpartition(_FIRST)[2]
    rank = _RANK.search(summary)
    own = [each for each in tracebacks if rank and f"[rank{rank[1]}]:" in lines[each[0]]]
    return own or tracebacks


def _with_causes(lines: Sequence[str], tracebacks: Sequence[Sequence[int]]) -> list[int]:
    """Return the lines of the last traceback, from the first that it was chained to."""
    first = last = tracebacks[-1]
    for earlier in reversed(tracebacks[:-1]):
        between = range(earlier[-1] + 1, first[0])
        if not any(text in lines[at] for at in between for text in _CHAINED):
            break
        first = earlier
    return [*range(first[0], last[0]), *last]
