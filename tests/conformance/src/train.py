"""A training script that learns nothing, fast: checkpoints with a score, then a model."""

import argparse
import json
import os
import shutil
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--scores", default="0.5,0.7,0.6")
    parser.add_argument("--fail", default="")
    parser.add_argument("--note", default="")
    parser.add_argument("--seconds", type=float, default=0)
    options, _ = parser.parse_known_args()
    base = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
    data = Path(os.environ["SM_CHANNEL_TRAINING"])
    seen = sorted(str(p.relative_to(data)) for p in data.rglob("*") if p.is_file())
    time.sleep(options.seconds)
    if options.fail:
        raise RuntimeError(options.fail)
    if "SM_CHANNEL_RESULTS" in os.environ:
        results = Path(os.environ["SM_CHANNEL_RESULTS"])
        (results / "run").mkdir(exist_ok=True)
        (results / "run" / "two words + ü.txt").write_text(options.scores)
        (results / "summary.json").write_text(json.dumps(seen))
    if os.environ["SM_CURRENT_HOST"] == sorted(json.loads(os.environ["SM_HOSTS"]))[0]:
        for number, score in enumerate(options.scores.split(","), start=1):
            folder = base / "checkpoints" / f"step-{number}"
            (folder / "code").mkdir(parents=True, exist_ok=True)
            found = {"score": float(score), "seen": seen, "note": options.note}
            (folder / "model.json").write_text(json.dumps(found, ensure_ascii=False))
            shutil.copy(Path(__file__).with_name("inference.py"), folder / "code")
    model = Path(os.environ["SM_MODEL_DIR"])
    (model / "model.json").write_text(json.dumps({"note": options.note}))


if __name__ == "__main__":
    main()
