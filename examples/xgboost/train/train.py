"""Boosts trees until the error on the validation channel stays the same; packs what serves them."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import xgboost

from shared import flats

PATIENCE = 20


def main() -> None:
    parser = argparse.ArgumentParser()
    # Your code: a hyperparameter of the pipeline is an option here.
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--eta", type=float, default=0.3)
    options = parser.parse_args()
    train = flats.read(Path(os.environ["SM_CHANNEL_TRAIN"]))
    validation = flats.read(Path(os.environ["SM_CHANNEL_VALIDATION"]))
    # Your code: the objective and the other parameters of XGBoost. What it prints of each round is
    # what `metrics` of the pipeline finds.
    booster = xgboost.train(
        {"objective": "reg:squarederror", "max_depth": options.depth, "eta": options.eta},
        train,
        num_boost_round=options.rounds,
        evals=[(train, "train"), (validation, "validation")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=10,
    )
    best = booster[: booster.best_iteration + 1]
    print(f"[{booster.best_iteration}]\tvalidation-rmse:{booster.best_score:.5f}")
    target = Path(os.environ["SM_MODEL_DIR"])
    best.save_model(target / "model.json")
    here, code = Path(__file__).parent, target / "code"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(here / "shared", code / "shared", ignore=ignored, dirs_exist_ok=True)
    shutil.copy(here / "inference.py", code)


if __name__ == "__main__":
    main()
