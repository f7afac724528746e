"""Tags that every service takes: IAM, which is the strictest, gets them with each deployment.

Their lengths and characters are those of IAM's and SageMaker's models in botocore 1.43.
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html: IAM's keys differ by more than case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.checks.patterns import matches
from orchestration.errors import Problem

_CHARACTERS: Final = r"[\p{L}\p{Z}\p{N}_.:/=+\-@]*"
_LONGEST_KEY: Final = 128
_LONGEST_VALUE: Final = 256


def problems(tags: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what AWS would refuse of tags, each with its key."""
    alike: dict[str, list[str]] = defaultdict(list)
    for key, value in tags.items():
        alike[key.lower()].append(key)
        yield from _text(key, "the key", key, _LONGEST_KEY)
        yield from _text(key, "the value", value, _LONGEST_VALUE)
        if not key:
            yield Problem(key, "a key has one character at least")
    for first, *others in alike.values():
        for key in others:
            yield Problem(
                key,
                f"differs from {first!r} by case alone, and IAM, which gets the tags with every "
                "role that a deployment makes, takes both for one; remove one of them",
            )


def _text(key: str, what: str, text: str, most: int) -> Iterator[Problem]:
    if len(text) > most:
        yield Problem(key, f"{what} has {len(text)} characters; the most is {most}")
    elif not matches(_CHARACTERS, text):
        yield Problem(
            key,
            f"{what} is {text!r}, and AWS takes letters, digits, spaces and _.:/=+-@ in tags only",
        )
