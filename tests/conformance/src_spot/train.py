"""A training script in steps, that goes on behind the checkpoints it finds."""

import json
import os
import time
from pathlib import Path

STEPS = 3


def main() -> None:
    checkpoints = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")) / "checkpoints"
    found = sorted(path.name for path in checkpoints.glob("step-*.json"))
    scratch = checkpoints.parent / "model" / "unsaved.txt"
    lost = not scratch.exists()
    scratch.write_text("on the instance only")
    for number in range(len(found) + 1, STEPS + 1):
        (checkpoints / f"step-{number}.json").write_text(json.dumps({"step": number}))
        if not found:
            time.sleep(900)  # until the instance is taken back
    model = Path(os.environ["SM_MODEL_DIR"])
    (model / "model.json").write_text(json.dumps({"found": found, "lost": lost}))


if __name__ == "__main__":
    main()
