"""The tool that fits the coefficients, which is no part of any package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_fit() -> ModuleType:
    """Import ``tools/planning/fit.py``, which needs scipy."""
    path = Path(__file__).parents[3] / "tools/planning/fit.py"
    spec = importlib.util.spec_from_file_location("fit", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit"] = module
    spec.loader.exec_module(module)
    return module
