"""Measures the final model on customers that it has not seen."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import joblib
from sklearn.metrics import roc_auc_score

import table

# The embedded AWS has no container: it says where its /opt/ml is.
ROOT = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")) / "processing"


def main() -> None:
    with tarfile.open(ROOT / "input/model/model.tar.gz") as archive:
        archive.extractall("model", filter="data")
    model = joblib.load("model/model.joblib")
    features, left = table.read(ROOT / "input/holdout")
    auc = roc_auc_score(left, model.predict_proba(features)[:, 1])
    report = {"auc": float(auc), "customers": len(left)}
    (ROOT / "output/facts/report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
