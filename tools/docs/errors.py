"""The errors in the documentation: a page of each for the site, and the table of docs/errors.md.

    python -m tools.docs.errors [--check]

writes the table; `--check` exits with 1 if the page differs. Both are from the texts that
`orchestrate explain` prints.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestration.explanations import explained, explanations, markdown
from orchestration.explanations.texts import SUBJECTS, subject

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
BEGIN = "<!-- tools/docs/errors.py writes what follows -->\n"
END = "<!-- until here -->\n"
_ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def pages() -> dict[str, str]:
    """Return the page of each error by its place below `docs/`."""
    return {
        f"errors/{name}.md": markdown(each, docs="../") for name, each in explanations().items()
    }


def menu() -> list[dict[str, Any]]:
    """Return the site's menu of these pages."""
    return [
        {heading: [f"errors/{name}.md" for name in subject(key)]}
        for key, heading in SUBJECTS.items()
    ]


def linked(text: str) -> str:
    """Lead each name in the table to its page."""
    return _ROW.sub(
        lambda match: (
            f"| [`{match[1]}`](errors/{match[1]}.md) |" if explained(match[1]) else match[0]
        ),
        text,
    )


def table() -> Iterator[str]:
    """Yield the lines of the table, by subjects."""
    for key, heading in SUBJECTS.items():
        yield f"\n### {heading}\n"
        yield "| error | what happened | what to do |"
        yield "|---|---|---|"
        for name, each in subject(key).items():
            also = "".join(f" Also named `{other}`." for other in each.also)
            yield f"| `{name}` | {each.happened}{also} | {each.cure} |"


def written(text: str) -> str:
    """Return the page with the table as it has to be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(table()).lstrip("\n") + "\n" + END + after


def main(arguments: list[str]) -> int:
    old = PAGE.read_text("utf-8")
    new = written(old)
    if "--check" in arguments:
        return int(old != new)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
