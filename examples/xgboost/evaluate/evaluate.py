"""Measures the final model on flats that training has not seen."""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import xgboost

from shared import flats


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.model / "model.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        booster = xgboost.Booster(model_file=Path(folder, "model.json"))
    holdout = flats.read(options.data)
    errors = booster.predict(holdout) - holdout.get_label()
    # Your code: further numbers go into `metrics`, where thresholds and bounds read them.
    metrics = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "mean_error": float(np.mean(np.abs(errors))),
    }
    report = {"metrics": metrics, "flats": len(errors)}
    (options.output / "evaluation.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
