"""The commands and files that a page shows, in the order in which its reader meets them.

A block whose first line is `# NAME` is a file of that name. What else a reader has (a file that is
only spoken of, something deployed before) is said in blocks inside an HTML comment, which no reader
sees. `<!-- setting: NAME -->` stands for such blocks that several pages need, in `settings/`.
`<!-- exits 1 -->` is about the last command of the block that follows, `<!-- thorough -->` about
all of them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_PIECE = re.compile(
    r"<!-- setting: (?P<setting>\w+) -->|(?P<opens><!--)|(?P<closes>-->)"
    r"|^ *```(?P<language>\w+)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_SETTINGS = Path(__file__).with_name("settings")
_MARK = re.compile(r"<!-- (exits (?P<status>\d+)|(?P<thorough>thorough)) -->\s*\Z")
_NAMED = re.compile(r"# (\S+\.\w+)\n")


@dataclass(frozen=True)
class ShownFile:
    """A file, as its reader saves it."""

    name: str
    text: str
    hidden: bool = False


@dataclass(frozen=True)
class ShownCommand:
    """A command, and what is shown below it; ``hidden``: it prepares what the page tells of."""

    line: str
    output: str = ""
    status: int = 0
    thorough: bool = False
    hidden: bool = False


Step: TypeAlias = ShownFile | ShownCommand


def steps(page: Path) -> Iterator[Step]:
    """Yield what a reader of a page does, from its beginning to its end."""
    text = page.read_text("utf-8")
    hidden = page.parent == _SETTINGS
    for piece in _PIECE.finditer(text):
        if piece["setting"]:
            yield from steps(_SETTINGS / f"{piece['setting']}.md")
            continue
        if piece["opens"] or piece["closes"]:
            hidden = bool(piece["opens"])
            continue
        block = textwrap.dedent(piece["text"])
        named = _NAMED.match(block)
        if piece["language"] == "console":
            mark = _MARK.search(text, 0, piece.start())
            status = int(mark["status"] or 0) if mark else 0
            thorough = bool(mark and mark["thorough"])
            *before, (line, output) = _commands(block)
            for each, printed in before:
                yield ShownCommand(each, printed, 0, thorough, hidden)
            yield ShownCommand(line, output, status, thorough, hidden)
        elif named:
            # JSON has no comments.
            whole = block[named.end() :] if named[1].endswith(".json") else block
            yield ShownFile(named[1], whole, hidden)


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a block in one line, without its comment, and its output."""
    joined = re.sub(r"\\\n *|(?<=,)\n +(?=\")", "", block)
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield re.sub(r" +# .*", "", line).strip(), output
