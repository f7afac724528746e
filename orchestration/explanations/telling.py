"""The words in which explanations are told."""

from __future__ import annotations

from orchestration.explanations.explanation import Explanation
from orchestration.explanations.texts import explained

_ORIGINS = {
    "stage": "stages of many kinds",
    "run": "the run as a whole",
    "command": "commands and Python programs, before or beside a run",
}


def hint(error: str | None) -> str | None:
    """Return the command that explains an error, ``None`` where nothing is known of it.

    >>> hint("NoCheckpoints")
    'orchestrate explain NoCheckpoints'
    """
    known = None if error is None else explained(error)
    return None if known is None else f"orchestrate explain {known.name}"


def markdown(explanation: Explanation, *, docs: str | None = None) -> str:
    """Return an explanation as Markdown.

    ``docs`` leads from its place to the folder of further pages; without it they are only named.
    """
    origins = ", ".join(_ORIGINS.get(each, f"`{each}`") for each in explanation.raised_by)
    further = ", ".join(
        f"`docs/{page}`" if docs is None else f"[{_title(page)}]({docs}{page})"
        for page in explanation.see
    )
    also = ", ".join(f"`{name}`" for name in explanation.also)
    return (
        f"# {explanation.name}\n\n{explanation.happened}\n\n"
        + (f"Also named {also}.\n\n" if also else "")
        + f"## What to do\n\n{explanation.cure}\n\n"
        f"## Where it comes from\n\nRaised by {origins}. For example:\n\n"
        f"```text\n{explanation.name}: {explanation.example}\n```\n"
        + (f"\nRead on: {further}.\n" if further else "")
    )


def _title(page: str) -> str:
    return page.removesuffix(".md").replace("_", " ")
