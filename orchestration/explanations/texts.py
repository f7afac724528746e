"""The explanations, read from the YAML files of this folder when the first is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from orchestration.explanations.explanation import Explanation

SUBJECTS: Final[Mapping[str, str]] = {
    "runs": "Any run",
    "data": "Data",
    "evaluation": "Evaluations and searches",
    "serving": "Endpoints",
    "aws": "Refusals of AWS",
    "stepfunctions": "Names that Step Functions gives",
    "commands": "Exceptions, which commands and Python programs end with",
}
"""The files, in the order of the documentation, each with its heading."""
_UNDECLARED: Final = "RequestRefused"


@cache
def subject(name: str) -> Mapping[str, Explanation]:
    """Return the explanations of a subject by the names of the errors."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    entries = yaml.load(text, loader)  # noqa: S506 (a safe loader, the one in C where there is one)
    return MappingProxyType(
        {
            error: Explanation(
                name=error,
                happened=entry["happened"],
                cure=entry["cure"],
                raised_by=tuple(entry["raised_by"]),
                example=entry["example"],
                see=tuple(entry["see"]),
                also=tuple(entry.get("also", ())),
            )
            for error, entry in entries.items()
        }
    )


@cache
def explanations() -> Mapping[str, Explanation]:
    """Return all explanations by the names of the errors."""
    return MappingProxyType(
        {name: each for file in SUBJECTS for name, each in subject(file).items()}
    )


@cache
def _by_names() -> Mapping[str, Explanation]:
    """Return all explanations by the names of the errors, and by their further names."""
    known = explanations()
    also = {name: each for each in known.values() for name in each.also}
    return MappingProxyType({**also, **known})


def explained(error: str) -> Explanation | None:
    """Return the explanation of an error, ``None`` where there is none.

    Step Functions puts an integration's name before AWS's, and AWS ends some in ``Exception``:
    ``Sns.AccessDeniedException`` and ``AccessDenied`` are one. An error that a service's model does
    not declare has the service's own name there: ``S3.S3Exception``.

    >>> explained("S3.NoSuchBucketException").name
    'NoSuchBucket'
    >>> explained("S3.S3Exception").name
    'RequestRefused'
    """
    known = _by_names()
    if error in known:
        return known[error]
    service, _, name = error.rpartition(".")
    plain = name.removesuffix("Exception")
    if service and plain == service:
        return known[_UNDECLARED]
    # An execution that was ended from outside has only its status: ``ABORTED``.
    return known.get(plain) or known.get(f"{plain}Exception") or known.get(error.capitalize())
