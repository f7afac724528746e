"""Learns nothing: takes its time, writes checkpoints with a score each, and fails if it is told."""

import argparse
import json
import os
import shutil
import time
from pathlib import Path

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--seconds", type=float, default=0)
parser.add_argument("--fail", default="no")
options, _ = parser.parse_known_args()
print(f"working for {options.seconds} s", flush=True)
time.sleep(options.seconds)
if options.fail != "no":
    raise SystemExit(options.fail)
base = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
for number, score in enumerate((0.5, 0.7, 0.6), start=1):
    folder = base / "checkpoints" / f"step-{number}"
    (folder / "code").mkdir(parents=True, exist_ok=True)
    (folder / "model.json").write_text(json.dumps({"score": score}))
    shutil.copy(Path(__file__).with_name("inference.py"), folder / "code")
(Path(os.environ["SM_MODEL_DIR"]) / "model.json").write_text("{}")
