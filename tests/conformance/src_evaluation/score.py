"""Scores predictions: of each record, its label and what the model answered."""

import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--predictions", type=Path, required=True)
parser.add_argument("--data", type=Path, required=True)
parser.add_argument("--output", type=Path, required=True)
options = parser.parse_args()
answered = {each.name for each in options.predictions.rglob("*.out")}
asked = {f"{each.name}.out" for each in options.data.rglob("*.csv")}
if answered != asked:
    raise SystemExit(f"expected predictions of {asked}, got {answered}")
lines = [line for each in options.predictions.rglob("*.out") for line in each.open()]
right = [int(label) == int(float(answer)) for label, answer in (each.split(",") for each in lines)]
metrics = {"accuracy": sum(right) / len(right)}
halves = {"first": sum(right[::2]) / len(right[::2]), "second": sum(right[1::2]) / len(right[1::2])}
report = json.dumps({"metrics": metrics, "slices": {"half": halves}})
(options.output / "evaluation.json").write_text(report)
examples = [json.dumps({"id": n, "accuracy": int(each)}) for n, each in enumerate(right)]
(options.output / "examples.jsonl").write_text("\n".join(examples))
