"""Time loading, lowering and rendering of the digits pipeline."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions

DIGITS = Path(__file__).parents[1] / "dags" / "digits.yaml"
RUNS = 50


def milliseconds(action: Callable[[], object]) -> float:
    action()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def main() -> None:
    pipeline = Pipeline.load(DIGITS)
    workflow = pipeline.lower()
    actions = {
        "load and check the YAML file": lambda: Pipeline.load(DIGITS),
        "lower and check": pipeline.lower,
        "render Step Functions": lambda: stepfunctions.render(workflow),
        "render Airflow": lambda: airflow.render(workflow),
    }
    for name, action in actions.items():
        print(f"{name:30} {milliseconds(action):7.2f} ms")


if __name__ == "__main__":
    main()
