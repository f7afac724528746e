"""A plugin of pytest that writes down the texts of each finding that tests provoke."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.preflight import Finding

if TYPE_CHECKING:
    import pytest

FILE = "FINDINGS"
"""The variable that names the file."""
_texts: set[str] = set()
_made = Finding.__init__


def _recorded(self: Finding, **fields: Any) -> None:
    _made(self, **fields)
    _texts.update(value for value in asdict(self).values() if isinstance(value, str))


def pytest_configure() -> None:
    Finding.__init__ = _recorded  # type: ignore[method-assign]


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        Path(os.environ[FILE]).write_text(json.dumps(sorted(_texts)))
