"""Measures the final model on customers that it has not seen."""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from pathlib import Path

import joblib
from sklearn.metrics import roc_auc_score

from shared import table


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.model / "model.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        model = joblib.load(Path(folder, "model.joblib"))
    features, left = table.read(options.data)
    auc = roc_auc_score(left, model.predict_proba(features)[:, 1])
    # Your code: further numbers go into `metrics`, where thresholds and bounds read them.
    report = {"metrics": {"auc": float(auc)}, "customers": len(left)}
    (options.output / "evaluation.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
