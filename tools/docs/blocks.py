"""The blocks of code on the pages, in their order, with those in comments.

What else a reader has is said in blocks inside an HTML comment, which no reader sees. A block whose
first line is `# NAME` is a file of that name.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_PIECE = re.compile(
    r"(?P<opens><!--)|(?P<closes>-->)|^ *```(?P<language>\w+)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_NAMED = re.compile(r"# (\S+\.\w+)\n")


@dataclass(frozen=True)
class Block:
    """A block as a page shows it."""

    page: str
    number: int
    """Of its language, on its page."""
    language: str
    text: str
    hidden: bool
    """It stands in a comment."""

    def __str__(self) -> str:
        return f"{self.page}-{self.language}-{self.number}"

    @property
    def name(self) -> str | None:
        """The file that it is, if it says so in its first line."""
        named = _NAMED.match(self.text)
        return named[1] if named else None

    @property
    def content(self) -> str:
        """The text without the name, which JSON has no place for."""
        named = _NAMED.match(self.text) if self.language == "json" else None
        return self.text[named.end() :] if named else self.text


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of some languages on all pages."""
    return [block for page in PAGES for block in on(page) if block.language in languages]


def on(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    counts: dict[str, int] = {}
    hidden = False
    for piece in _PIECE.finditer(page.read_text("utf-8")):
        if piece["language"] is None:
            hidden = bool(piece["opens"])
            continue
        language = "python" if piece["language"] == "py" else piece["language"]
        counts[language] = counts.get(language, 0) + 1
        text = textwrap.dedent(piece["text"])
        yield Block(page.stem, counts[language], language, text, hidden)


def modules() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each block of Python, after those in comments before it."""
    before: dict[str, str] = {}
    for block in blocks("python"):
        if block.hidden and block.name is None:
            before[block.page] = before.get(block.page, "") + block.text
        else:
            yield f"{block.page}_{block.number}", before.get(block.page, "") + block.text
