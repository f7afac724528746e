"""Fits a classifier to all customers of the channel, and packs it with the code that serves it."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import joblib
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shared import table


def main() -> None:
    parser = argparse.ArgumentParser()
    # Your code: a hyperparameter of the pipeline is an option here.
    parser.add_argument("--smoothing", type=float, default=1.0)
    options = parser.parse_args()
    features, left = table.read(Path(os.environ["SM_CHANNEL_TRAIN"]))
    # Your code: the model, and how it is fitted.
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1 / options.smoothing))
    model.fit(features, left)
    print(f"train:auc={roc_auc_score(left, model.predict_proba(features)[:, 1]):.4f}")
    target = Path(os.environ["SM_MODEL_DIR"])
    joblib.dump(model, target / "model.joblib")
    (target / "code").mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("inference.py"), target / "code")


if __name__ == "__main__":
    main()
