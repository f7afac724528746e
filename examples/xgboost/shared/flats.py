"""Flats in CSV, as XGBoost wants them: what to predict in the first column, without a heading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xgboost

FEATURES = ["square_metres", "rooms", "minutes", "floor"]


def read(folder: Path) -> xgboost.DMatrix:
    """Return the rows of all files of a folder."""
    # Your code: read your files here, and name their columns.
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise SystemExit(f"no *.csv in {folder}")
    table = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in files])
    return xgboost.DMatrix(table[:, 1:], table[:, 0], feature_names=FEATURES)
