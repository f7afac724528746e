"""Standard output and standard error, for people and for programs.

With ``--json`` standard output is exactly one JSON document. Rich draws on terminals only;
elsewhere, and with ``NO_COLOR``, text is plain.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from orchestration.errors import OrchestrationError

if TYPE_CHECKING:
    from rich.console import Console

    from orchestration.errors import Problem

FAILED = 1
USAGE = 2
LOST = 3
"""A run could be seen, and can't any more: how it ends is not known."""
INTERRUPTED = 130
"""128 + SIGINT, as in shells."""
_JSON = "orchestration.json"


def say(text: str) -> None:
    """Print a line on standard output."""
    typer.echo(text)


def note(text: str) -> None:
    """Print a line for people on standard error."""
    typer.echo(text, err=True)


def note_failure(what: str, error: str | None, cause: str | None) -> None:
    """Say that a run failed, and which command explains its error."""
    note(f"error: {what}: {error}: {cause}")
    note_hint(error)


def note_hint(error: str | None) -> None:
    """Name the command that explains an error, if one does."""
    from orchestration.explanations import hint

    command = hint(error)
    if command is not None:
        note(f"what to do: {command}")


def document(value: object) -> None:
    """Print the one JSON document of standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def console(*, err: bool = False) -> Console:
    """Create a Rich console; without a terminal, lines are not wrapped, so that grep finds them."""
    from rich.console import Console

    made = Console(stderr=err, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Console(stderr=err, highlight=False, width=200)


def use_json(context: typer.Context, value: bool) -> bool:
    """Remember ``--json``, so that errors are JSON too."""
    if value:
        context.meta[_JSON] = True
    return value


def problem_data(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Return the problems of an error as JSON."""
    return [{"path": problem.path, "message": problem.message} for problem in problems]


class Commands(TyperGroup):
    """A group of commands; errors of this package end them with a message and no traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except OrchestrationError as error:
            _report(error, as_json=_JSON in ctx.meta)
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt as error:
            note(str(error) or "interrupted; jobs and processes of the run are stopped")
            if getattr(error, "at_once", False):
                # Python would wait for threads, which may hang in a request.
                sys.stderr.flush()
                os._exit(INTERRUPTED)
            raise typer.Exit(INTERRUPTED) from error


def _report(error: OrchestrationError, *, as_json: bool) -> None:
    note(f"error: {error}")
    if as_json:
        problems = getattr(error, "problems", ())
        document(
            {
                "error": type(error).__name__,
                "message": str(error),
                "problems": problem_data(problems),
            }
        )


def require(modules: Mapping[str, str], *, what: str) -> None:
    """Raise an error that names the extras to install if modules are missing."""
    extras = sorted({extra for module, extra in modules.items() if not _is_installed(module)})
    if extras:
        raise OrchestrationError(
            f"{what} needs packages that are not installed; run "
            f"`{sys.executable} -m pip install 'sagemaker-orchestration[{','.join(extras)}]'`"
        )


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # To look for `airflow.sdk` is to import `airflow`.
        return False


def colored_diff(lines: Sequence[str], write: Callable[[str], None] = say) -> None:
    """Format a diff, in colours on a terminal; lines may be indented."""
    colors = {
        "+": typer.colors.GREEN,
        "-": typer.colors.RED,
        "~": typer.colors.YELLOW,
        "@": typer.colors.CYAN,
    }
    for line in lines:
        text = line.rstrip("\n")
        sign = text.lstrip()[:1]
        write(typer.style(text, fg=colors[sign]) if sign in colors else text)
