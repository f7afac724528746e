"""Measures the best model of the search on hours that no training job has seen."""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from pathlib import Path

from shared import rentals


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.model / "model.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        model = rentals.Model.load(Path(folder, "model.npz"))
    features, rented = rentals.read(options.data)
    # Your code: further numbers go into `metrics`, where thresholds and bounds read them.
    report = {"metrics": {"error": model.error(features, rented)}, "hours": len(rented)}
    (options.output / "evaluation.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
