"""Measures one checkpoint on the digits held back from training; a processing job runs it.

Writes `evaluation.json`: `{"metrics": {"accuracy": 0.97, "loss": 0.1}, "count": 360, "slices":
{"digit": {"0": 0.99, …}}}`, and `examples.jsonl`, a line for each image, by which two models are
compared: `{"id": "17", "accuracy": 1}`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch

from shared import digits, model


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder with model.pt")
    parser.add_argument("--data", type=Path, required=True, help="folder with holdout*.csv.gz")
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    pixels, labels = digits.read(options.data, "holdout*.csv.gz")
    network = model.load(options.checkpoint)
    metrics = model.quality(network, pixels, labels)
    right = model.right(network, pixels, labels)
    of_digits = {str(each): right[labels == each].mean().item() for each in range(model.LABELS)}
    evaluation = {"metrics": metrics, "count": len(labels), "slices": {"digit": of_digits}}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "evaluation.json").write_text(json.dumps(evaluation, indent=2) + "\n")
    examples = [{"id": str(row), "accuracy": int(one)} for row, one in enumerate(right.tolist())]
    lines = "".join(json.dumps(example) + "\n" for example in examples)
    (options.output / "examples.jsonl").write_text(lines)
    print(" ".join(f"evaluation:{name}={value:.6f}" for name, value in metrics.items()))


if __name__ == "__main__":
    main()
