"""The command ``python -m orchestration.planning.evaluate``; see `calibration.evaluate`."""

from __future__ import annotations

from orchestration.planning.calibration.evaluate import main

if __name__ == "__main__":
    raise SystemExit(main())
