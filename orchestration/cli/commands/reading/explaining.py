"""``orchestrate explain``: what an error means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from orchestration.cli.output import FAILED, console, document, note, say
from orchestration.errors import near
from orchestration.explanations import Explanation, explained, explanations, markdown


def explain(error: str | None, *, as_json: bool) -> None:
    """Print the explanation of an error, or without one the list of all."""
    if error is None:
        _all(explanations(), as_json=as_json)
        return
    found = explained(error)
    if found is None:
        raise _unknown(error, as_json=as_json)
    if as_json:
        document(found.to_json())
    elif console().is_terminal:
        from rich.markdown import Markdown

        console().print(Markdown(markdown(found)))
    else:
        say(markdown(found).rstrip())


def _all(known: Mapping[str, Explanation], *, as_json: bool) -> None:
    if as_json:
        document([each.to_json() for each in known.values()])
        return
    width = max(map(len, known))
    for name, each in known.items():
        say(f"{name:{width}}  {each.happened}")


def _unknown(error: str, *, as_json: bool) -> typer.Exit:
    """Say that an error is not ours, and return the command's end."""
    message = f"there is no explanation of {error!r}{_meant(error)}"
    note(f"error: {message}")
    if as_json:
        document({"error": "Unexplained", "message": message})
    return typer.Exit(FAILED)


def _meant(error: str) -> str:
    """Return the name that was meant, or where else an error may be from."""
    words = near(error, explanations())
    if words.startswith("; did"):
        return words
    return (
        "; AWS has names of its own, and so have `fail` stages: the run's cause has the words. "
        "`orchestrate explain` lists all that there are here"
    )
