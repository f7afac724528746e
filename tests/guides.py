"""The files that the guides in ``docs/`` show, as their readers would save them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.docs.pages import without_comments

OWN_STAGES = Path(__file__).parents[1] / "docs" / "own_stages.md"
FOR_EACH = Path(__file__).parents[1] / "docs" / "for_each.md"
AFTER_THE_END = Path(__file__).parents[1] / "docs" / "after_the_end.md"
NESTED_PIPELINES = Path(__file__).parents[1] / "docs" / "nested_pipelines.md"
TUNING = Path(__file__).parents[1] / "docs" / "tuning.md"
DEPLOYMENT = Path(__file__).parents[1] / "docs" / "deployment.md"
EVALUATION = Path(__file__).parents[1] / "docs" / "evaluation.md"
REGISTRY = Path(__file__).parents[1] / "docs" / "registry.md"
TRIGGERS = Path(__file__).parents[1] / "docs" / "triggers.md"
EMBEDDING = Path(__file__).parents[1] / "docs" / "embedding.md"
CONDITIONS = Path(__file__).parents[1] / "docs" / "conditions.md"
TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
AWS_CALLS = Path(__file__).parents[1] / "docs" / "aws_calls.md"


def shown(guide: Path, language: str) -> list[str]:
    """Return the blocks of code of one language that a guide shows."""
    return re.findall(
        rf"```{language}\n(.*?)```", without_comments(guide.read_text("utf-8")), re.DOTALL
    )


@contextmanager
def own_stages(folder: Path) -> Iterator[Path]:
    """``my_stages.py`` and ``features.yaml``, as the guide to stages of one's own shows them."""
    blocks = re.findall(
        r"```(python|yaml)\n(.*?)```", without_comments(OWN_STAGES.read_text("utf-8")), re.DOTALL
    )
    for language, text in blocks:
        name = "my_stages.py" if language == "python" else "features.yaml"
        (folder / name).write_text(text, encoding="utf-8")
    try:
        yield folder
    finally:
        sys.modules.pop("my_stages", None)
