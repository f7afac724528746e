"""Time a whole search of the planner: every instance type of the catalog, six counts each."""

import statistics
import time

from orchestration.planning.model.typical_shapes import transformer
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.task import Batch, Task

RUNS = 5
MODELS = {
    "125M": {"layers": 12, "hidden": 768, "heads": 12, "vocabulary": 50257},
    "7B": {"layers": 32, "hidden": 4096, "heads": 32, "vocabulary": 32000},
    "70B": {"layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "vocabulary": 32000},
}


def main() -> None:
    print(f"{'model':8} {'seconds':>8} {'configurations predicted':>26}")
    for name, numbers in MODELS.items():
        batch = Batch(least=512, most=512)
        task = Task(model=transformer(**numbers), sequence=4096, samples=500_000, batch=batch)
        times, considered = [], 0
        for _ in range(RUNS):
            started = time.perf_counter()
            considered = find_plans(task).considered
            times.append(time.perf_counter() - started)
        print(f"{name:8} {statistics.median(times):8.2f} {considered:26,}")


if __name__ == "__main__":
    main()
