"""Fits one model with the hyperparameters of this training job, and prints how good it is."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from shared import rentals


def main() -> None:
    parser = argparse.ArgumentParser()
    # Your code: a hyperparameter that is searched is an option here.
    parser.add_argument("--waves", type=int, default=100)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--penalty", type=float, default=1.0)
    # SageMaker tells every training job of a search the name of the objective, too.
    options, _ = parser.parse_known_args()
    features, rented = rentals.read(Path(os.environ["SM_CHANNEL_TRAIN"]))
    model = rentals.Model.fitted(
        features, rented, waves=options.waves, width=options.width, penalty=options.penalty
    )
    held_back = rentals.read(Path(os.environ["SM_CHANNEL_VALIDATION"]))
    print(f"validation:error={model.error(*held_back):.3f}")
    target = Path(os.environ["SM_MODEL_DIR"])
    model.save(target / "model.npz")
    here, code = Path(__file__).parent, target / "code"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(here / "shared", code / "shared", ignore=ignored, dirs_exist_ok=True)
    shutil.copy(here / "inference.py", code)


if __name__ == "__main__":
    main()
