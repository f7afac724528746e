"""Measures one checkpoint on the digits held back from training; a processing job runs it.

Writes `evaluation.json`: `{"metrics": {"accuracy": 0.97, "loss": 0.1}, "count": 360}`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch

import digits
import model


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder with model.pt")
    parser.add_argument("--data", type=Path, required=True, help="folder with holdout*.csv.gz")
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    pixels, labels = digits.read(options.data, "holdout*.csv.gz")
    metrics = model.quality(model.load(options.checkpoint), pixels, labels)
    options.output.mkdir(parents=True, exist_ok=True)
    evaluation = json.dumps({"metrics": metrics, "count": len(labels)}, indent=2)
    (options.output / "evaluation.json").write_text(evaluation + "\n")
    print(" ".join(f"evaluation:{name}={value:.6f}" for name, value in metrics.items()))


if __name__ == "__main__":
    main()
