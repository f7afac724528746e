"""Time a whole search of the planner: every instance type of the catalog, six counts each."""

import argparse
import gc
import time

from orchestration.planning.calibration.published_models import published
from orchestration.planning.model.shapes import ModelShape
from orchestration.planning.model.typical_shapes import transformer
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import CHEAPEST, Objective, by_deadline
from orchestration.planning.search.task import Batch, Task

MODELS: dict[str, ModelShape] = {
    "125M": transformer(layers=12, hidden=768, heads=12, vocabulary=50257),
    "7B": transformer(layers=32, hidden=4096, heads=32, vocabulary=32000),
    "70B": transformer(layers=80, hidden=8192, heads=64, kv_heads=8, vocabulary=32000),
    "405B": transformer(
        layers=126, hidden=16384, heads=128, kv_heads=8, ffn=53248, vocabulary=128256
    ),
    "Mixtral 8x7B": published("Mixtral_8x7B"),
    "Nemotron 3": published("Nemotron_3_Nano"),
    "DeepSeek V3": published("DeepSeekV3"),
}
BATCHES = {"one": Batch(least=512, most=512), "six": Batch(least=64, most=2048)}
HALF_AN_HOUR = by_deadline(1800)
QUESTIONS = [
    *((name, batches, CHEAPEST) for name in MODELS for batches in BATCHES),
    *((name, "one", HALF_AN_HOUR) for name in ("7B", "405B", "DeepSeek V3")),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    gc.set_threshold(100_000)  # as the command line has it
    print(f"{'model':14} {'batches':8} {'aim':24} {'CPU seconds':>12} {'predictions':>12}")
    for name, batches, objective in QUESTIONS:
        least, predicted = _search(MODELS[name], BATCHES[batches], objective, runs)
        print(f"{name:14} {batches:8} {objective!s:24} {least:12.2f} {predicted:12,}", flush=True)


def _search(model: ModelShape, batch: Batch, objective: Objective, runs: int) -> tuple[float, int]:
    """Return the least CPU seconds of several searches, and the predictions of one."""
    task = Task(model=model, sequence=4096, samples=500_000, batch=batch)
    times, predicted = [], 0
    for _ in range(runs):
        started = time.process_time()
        predicted = find_plans(task, objective=objective).considered
        times.append(time.process_time() - started)
    return min(times), predicted


if __name__ == "__main__":
    main()
