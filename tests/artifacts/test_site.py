"""The documentation's site has every page in its menu, and its made pages say what there is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

import orchestration
from tools.docs import errors, pages

ROOT = Path(__file__).parents[2]
MADE = pages.made()


class _Loader(yaml.SafeLoader):
    """A loader that knows mkdocs's tag for values out of the environment."""


_Loader.add_constructor("!ENV", lambda _loader, _node: None)


def _pages(menu: object) -> Iterator[str]:
    match menu:
        case str():
            yield menu
        case dict():
            for below in menu.values():
                yield from _pages(below)
        case list():
            for below in menu:
                yield from _pages(below)


def test_every_page_is_in_the_menu_once() -> None:
    menu = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), _Loader)["nav"]
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    menu = [*menu, *errors.menu()]  # as the hook does
    assert Counter(_pages(menu)) == Counter(written | MADE.keys())


def test_every_public_name_is_on_one_page() -> None:
    named = re.findall(r"^::: orchestration\.(\w+)$", "\n".join(MADE.values()), re.MULTILINE)
    assert sorted([*named, "__version__"]) == sorted(orchestration.__all__)


def test_every_command_has_its_options() -> None:
    text = MADE["reference/commands.md"]
    run = text.partition("## orchestrate run\n")[2].partition("\n## ")[0]
    assert "| `--parameter`, `-p` | Value of a parameter; repeatable. |" in run
    assert not re.search(r"\| +(Required\. )?\|$", text, re.MULTILINE)


def test_links_out_of_the_pages_lead_to_the_repository_or_nowhere() -> None:
    text = "[`a`](../examples/a.yaml), [b](b.md#c), [d](https://example.com)"
    here = "[b](b.md#c), [d](https://example.com)"
    assert pages.leaving(text, "") == f"`a`, {here}"
    led = pages.leaving(text, "https://example.com/x")
    assert led == f"[`a`](https://example.com/x/blob/main/examples/a.yaml), {here}"
    assert "](../CONTRIBUTING.md)" in MADE["index.md"]
    assert "](scripts.md)" in MADE["index.md"]
