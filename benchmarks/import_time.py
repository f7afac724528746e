"""Time `import orchestration` against `import pydantic`, turn by turn, in fresh interpreters."""

import statistics
import subprocess
import sys
import time

RUNS = 15
STATEMENTS = (
    "from pydantic import BaseModel",
    "import orchestration",
    "from orchestration import Pipeline",
    "import orchestration.cli",
)


def seconds(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def main() -> None:
    empty = [seconds("pass") for _ in range(RUNS)]
    times: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(RUNS):
        for statement in STATEMENTS:
            times[statement].append(seconds(statement))
    bare = statistics.median(empty)
    pydantic = times[STATEMENTS[0]]
    for statement in STATEMENTS:
        median = statistics.median(times[statement])
        ratio = statistics.median(a / b for a, b in zip(times[statement], pydantic, strict=True))
        print(
            f"{statement:36} {median - bare:.3f} s beyond the interpreter, {ratio:.2f} x pydantic"
        )


if __name__ == "__main__":
    main()
