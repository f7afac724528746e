"""Decide, and write `verdict.json`, `report.json` and `report.html`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if not __package__:
    # Started as a folder: it imports its own modules under the folder's name.
    _HERE = Path(__file__).resolve().parent
    sys.path.insert(0, str(_HERE.parent))
    runpy.run_module(_HERE.name, run_name="__main__")
    raise SystemExit

from .deciding import main

main(Path(sys.argv[1]), Path(sys.argv[2]))
