"""Hands on all files that lie beside the weights; fails where a file says so."""

import argparse
import shutil
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", type=Path)
parser.add_argument("--model", type=Path)
parser.add_argument("--data", type=Path)
parser.add_argument("--output", type=Path)
options = parser.parse_args()
folder = options.checkpoint or options.model
if (folder / "broken").exists():
    raise SystemExit("these weights are broken")
shutil.copytree(folder, options.output, dirs_exist_ok=True)
