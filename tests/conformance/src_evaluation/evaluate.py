"""Hands on the report that lies beside the weights of a checkpoint, or in a model.tar.gz."""

import argparse
import tarfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", type=Path)
parser.add_argument("--model", type=Path)
parser.add_argument("--data", type=Path, required=True)
parser.add_argument("--output", type=Path, required=True)
options = parser.parse_args()
if not any(options.data.iterdir()):
    raise SystemExit("there is no held-back data")
if options.model is not None:
    with tarfile.open(options.model / "model.tar.gz") as archive:
        archive.extractall(options.output)
else:
    report = options.checkpoint / "evaluation.json"
    (options.output / "evaluation.json").write_bytes(report.read_bytes())
