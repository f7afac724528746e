"""What mkdocs asks while it builds the site: pages that are made, and links that leave `docs/`."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File
from pymdownx.slugs import slugify
from pymdownx.superfences import fence_code_format

from tools.docs import errors, pages


def on_config(config: Any) -> Any:
    """Let headings have the anchors that they have on GitHub, and draw Mermaid's graphs."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    config.mdx_configs["pymdownx.superfences"] = {
        "custom_fences": [{"name": "mermaid", "class": "mermaid", "format": fence_code_format}]
    }
    config.nav.append({"Errors": errors.menu()})
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that are made from the package."""
    for place, text in pages.made().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Lead links outside of `docs/` to the repository, and leave comments out."""
    del files
    markdown = pages.without_comments(markdown)
    if page.file.src_uri == "errors.md":
        markdown = errors.linked(markdown)
    return pages.leaving(markdown, (config.repo_url or "").rstrip("/"))
