"""Measures one checkpoint on texts that training has not seen; writes `evaluation.json`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from shared import model, texts


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("checkpoint", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    given, labels = texts.read(options.data)
    # Your code: further numbers go into `metrics`, where thresholds and bounds read them.
    metrics = {"accuracy": model.accuracy(model.load(options.checkpoint), given, labels)}
    report = {"metrics": metrics, "texts": len(labels)}
    (options.output / "evaluation.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
