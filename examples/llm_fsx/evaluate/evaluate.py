"""Measures one checkpoint on text held back from training; a processing job runs it.

Writes `evaluation.json`: `{"metrics": {"loss": 0.7, "perplexity": 2.0}, "count": 20000}`, the loss
in nats per byte, its exponential, and the number of bytes predicted.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch

from shared import corpus, model

BATCH = 8


def evaluate(checkpoint: Path, data: Path) -> dict[str, object]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = model.load(checkpoint).to(device)
    texts = corpus.long_enough(corpus.read(data, "holdout*.txt"), network.config.context + 1)
    total, count = 0.0, 0
    with torch.inference_mode():
        for windows in texts.consecutive(BATCH):
            predicted = windows[:, 1:].numel()
            total += model.next_byte_loss(network, windows.to(device)).item() * predicted
            count += predicted
    return {
        "metrics": {"loss": total / count, "perplexity": math.exp(total / count)},
        "count": count,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder with model.pt")
    parser.add_argument("--data", type=Path, required=True, help="folder with holdout*.txt")
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    evaluation = evaluate(options.checkpoint, options.data)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "evaluation.json").write_text(json.dumps(evaluation, indent=2) + "\n")
    print(f"evaluation: {json.dumps(evaluation)}")


if __name__ == "__main__":
    main()
