"""Changes in an account: shown, and made after a yes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.output import colored_diff, note, say

if TYPE_CHECKING:
    from orchestration.deploy import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The options by which a command may change an account."""

    yes: bool
    dry_run: bool
    as_json: bool

    def ask(self, question: str) -> None:
        """Ask at the terminal unless ``--yes`` has answered; a no ends the command."""
        if self.yes:
            return
        if not sys.stdin.isatty():
            raise typer.BadParameter(
                "nobody is at a terminal to say yes to these changes; pass --yes, or --dry-run to "
                "see them only",
                param_hint="--yes",
            )
        if not typer.confirm(f"{question}?", err=True):
            note("nothing was changed")
            raise typer.Exit(1)

    def report(self, line: str) -> None:
        """Print what was done."""
        (note if self.as_json else say)(line)


def show(change: Change, *, full: bool = False) -> None:
    """Print a change: its summary, and what differs; ``full``: as a diff of JSON."""
    from orchestration.deploy import readable

    say(f"would {change.summary}")
    if full:
        colored_diff([f"    {line}" for line in change.detail.splitlines()])
    else:
        colored_diff([f"    {line}" for line in readable(change)])


def difference(change: Change) -> dict[str, Any]:
    """Return a change as JSON."""
    from orchestration.deploy import readable

    return {
        "change": change.kind,
        "resource": change.resource,
        "name": change.name,
        "difference": readable(change),
    }
