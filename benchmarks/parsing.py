"""Compare the DAG file of the digits pipeline with the same DAG written by hand, for Airflow.

Three things, turn by turn, in CPU seconds: parsing and serialising in a warm process; what imports
cost beyond Airflow and its Amazon provider; and processes as Airflow's DAG processor forks them for
every file, with their time and their own memory.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from airflow.cli.commands import dag_processor_command  # noqa: F401 (what the DAG processor is)
from airflow.dag_processing.dagbag import DagBag
from airflow.dag_processing.processor import _pre_import_airflow_modules
from airflow.plugins_manager import ensure_plugins_loaded
from airflow.serialization.serialized_objects import DagSerialization
from structlog import get_logger

HERE = Path(__file__).resolve().parent
BY_HAND = HERE / "hand_written.py"
OURS = HERE.parent / "dags/digits.py"
TURNS = 15
IMPORTS = """
import time
import airflow.sdk
import airflow.providers.amazon.aws.operators.sagemaker
started = time.process_time()
import orchestration.airflow.dags.building, orchestration.airflow.dags.reading
print(time.process_time() - started)
"""


def seconds(action):
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def parsed(file):
    bag = DagBag(dag_folder=str(file), collect_dags=False)
    bag.process_file(str(file), only_if_updated=False)
    if bag.import_errors:
        raise SystemExit(str(bag.import_errors))
    [dag] = bag.dags.values()
    return dag


def serialized(dag):
    return json.dumps(DagSerialization.to_dict(dag))


def private_mib():
    """Memory that this process shares with nobody."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def forked(file):
    """Parse a file as the DAG processor does; returns its process's CPU seconds and memory."""
    _pre_import_airflow_modules(str(file), get_logger())
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        spent, _ = seconds(lambda: serialized(parsed(file)))
        os.write(sending, json.dumps([spent, private_mib()]).encode())
        os._exit(0)
    os.close(sending)
    os.waitpid(child, 0)
    with os.fdopen(receiving) as answer:
        return json.load(answer)


def compared(title, measure, unit, scale):
    """Measure both files turn by turn, and print medians and their ratio."""
    results = {file: [] for file in (BY_HAND, OURS)}
    for turn in range(TURNS + 2):
        for file, values in results.items():
            value = measure(file)
            if turn >= 2:
                values.append(value)
    for index, what in enumerate(title):
        hand, ours = (statistics.median(v[index] for v in values) for values in results.values())
        print(
            f"{what:28} by hand {hand * scale[index]:8.1f} {unit[index]:3} "
            f"ours {ours * scale[index]:8.1f} {unit[index]:3} {ours / hand:5.2f} x"
        )


def warm(file):
    parsing, dag = seconds(lambda: parsed(file))
    serialising, text = seconds(lambda: serialized(dag))
    return parsing, serialising, parsing + serialising, len(text)


def main() -> None:
    # As in a DAG processor without the plugin, then with it; and warm only after that.
    processes = ("time of a forked process", "memory of its own")
    compared(processes, forked, ("ms", "MiB"), (1e3, 1))
    import_module("orchestration.airflow.plugin")._Preloading().on_starting(component=None)
    ensure_plugins_loaded()
    print("with the plugin:")
    compared(processes, forked, ("ms", "MiB"), (1e3, 1))
    print("warm:")
    compared(
        ("parse", "serialise", "both", "serialised DAG"),
        warm,
        ("ms", "ms", "ms", "kB"),
        (1e3, 1e3, 1e3, 1e-3),
    )
    times = [
        float(subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True).stdout)
        for _ in range(5)
    ]
    print(f"imports beyond Airflow and the provider: {statistics.median(times):.3f} s")


if __name__ == "__main__":
    main()
