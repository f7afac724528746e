"""The files that a definition was made of, in its comment: it can be read back when they are lost.

A comment is free text that AWS keeps and never reads. It holds a stream of YAML: what the machine
does, the pipeline, and its lock file without renderings, so that also a person finds the pipeline
there (``jq -r .Comment``). It says nothing that the pipeline's file does not say, which holds no
secrets, since what it says is in the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orchestration.graph import Workflow

_BETWEEN: Final = "\n---\n"


def with_origin(comment: str, origin: Sequence[Mapping[str, Any]]) -> str:
    """Return a comment with the data of the files behind it."""
    return _BETWEEN.join([comment, *texts(origin)])


def texts(origin: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of the files."""
    # What is read out of a lock file, here too, needs no YAML.
    from orchestration.pipeline.yaml import dumped

    return [dumped(each).strip() for each in origin]


def lacking(definition: Mapping[str, Any], workflow: Workflow) -> Iterator[str]:
    """Yield why a definition does not hold the file of its pipeline."""
    if len(parts(definition)) > 1:
        return
    text = "the definition does not hold the pipeline's file for `orchestrate import`"
    if workflow.origin:
        yield f"{text}, since it would exceed AWS's 1 MiB with it; keep the file"
    for problem in workflow.unwritten:
        yield f"{text}, since YAML can't say it: {problem}"


def bare(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition without the files that it carries, which its executions never read."""
    if "Comment" not in definition:
        return dict(definition)
    return {**definition, "Comment": parts(definition)[0]}


def parts(definition: Mapping[str, Any]) -> list[str]:
    """Return the comment of a definition, and the texts of the files that follow it."""
    comment = definition.get("Comment", "")
    return comment.rsplit(_BETWEEN, 2) if isinstance(comment, str) else [""]
