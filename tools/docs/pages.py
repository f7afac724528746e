"""The pages of the documentation that are made from the package: commands, names, errors.

They are made while the site is built and kept nowhere, so that none can be stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.docs import errors

ROOT = Path(__file__).resolve().parents[2]

PYTHON_PAGES = {
    "reference/pipelines.md": (
        "Pipelines and values",
        ("orchestration.pipeline", "orchestration.expressions", "orchestration.refs"),
    ),
    "reference/stages.md": ("Stages and their parts", ("orchestration.stages",)),
    "reference/strategies.md": ("Strategies", ("orchestration.strategies",)),
    "reference/running.md": (
        "Running and errors",
        ("orchestration.direct", "orchestration.errors"),
    ),
}
"""The page of each module of `orchestration`'s public names, with its title."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)


def made() -> dict[str, str]:
    """Return the text of each page that is made, by its place below `docs/`."""
    pages = {"index.md": _front(), "reference/commands.md": commands(), **errors.pages()}
    for place, (title, modules) in PYTHON_PAGES.items():
        pages[place] = names(title, modules)
    return pages


def _front() -> str:
    """Return the README, as it reads from inside of `docs/`."""

    def led(match: re.Match[str]) -> str:
        target = match[3]
        if "://" in target or target.startswith("#"):
            return match[0]
        place = target[5:] if target.startswith("docs/") else f"../{target}"
        return f"{match[1]}[{match[2]}]({place})"

    text = (ROOT / "README.md").read_text("utf-8").replace("<details>", '<details markdown="1">')
    return _LINK.sub(led, text)


def without_comments(markdown: str) -> str:
    """Leave out the comments, which tell tests what the reader of a page has."""
    return re.sub(r"^ *<!--.*?-->\n?", "", markdown, flags=re.DOTALL | re.MULTILINE)


def leaving(markdown: str, repository: str) -> str:
    """Let links to files outside of `docs/` lead to the repository, or to nothing without one."""

    def led(match: re.Match[str]) -> str:
        text, target = match[2], match[3]
        if not target.startswith("../"):
            return match[0]
        place = target.removeprefix("../")
        return f"[{text}]({repository}/blob/main/{place})" if repository else text

    return _LINK.sub(led, markdown)


def names(title: str, modules: tuple[str, ...]) -> str:
    """Return a page of the public names of some modules, which mkdocstrings fills in."""
    import orchestration

    chosen = sorted(
        (name for name, module in orchestration._MODULES.items() if module in modules),
        key=str.casefold,
    )
    entries = [f"::: orchestration.{name}\n" for name in chosen]
    return "\n".join([f"# {title}\n", *entries])


def commands() -> str:
    """Return the page of the commands, with what `--help` says of each."""
    from typer.main import get_command

    from orchestration.cli.app import app

    group = get_command(app)
    blocks = [
        "# Commands and options\n",
        _plain(group.help or ""),
        "\nEach command says the same with `--help`.\n",
    ]
    for name, command in sorted(_leaves("", group)):
        blocks += [f"## orchestrate {name}\n", _plain(command.help or ""), ""]
        blocks += [*_table(command), ""]
    return "\n".join(blocks)


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield name, command
    for child, below in children.items():
        if not below.hidden:
            yield from _leaves(f"{name} {child}".strip(), below)


def _table(command: Any) -> Iterator[str]:
    parameters = [one for one in command.params if not getattr(one, "hidden", False)]
    if not parameters:
        return
    yield "| argument or option | what it is |"
    yield "|---|---|"
    for one in parameters:
        option = one.param_type_name == "option"
        spelled = [*one.opts, *one.secondary_opts] if option else [one.metavar or one.name.upper()]
        text = " ".join(_plain(one.help or "The word itself.").split()).replace("|", "\\|")
        needed = " Required." if one.required else ""
        yield f"| {', '.join(f'`{name}`' for name in spelled)} | {text}{needed} |"


def _plain(text: str) -> str:
    """Return a help text as Markdown: what stands in angle brackets is no tag."""
    pieces = _CODE.split(text.replace("\b", "").strip())
    return "".join(
        piece if index % 2 else piece.replace("<", "&lt;") for index, piece in enumerate(pieces)
    )
