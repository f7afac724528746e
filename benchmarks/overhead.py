"""Time what the embedded run of the digits pipeline takes beyond its jobs' own time, per step."""

import datetime
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run import On, run

ROOT = Path(__file__).parents[1]
BACKENDS: tuple[On, ...] = ("step-functions", "airflow")
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/any:1"
PARAMETERS = {
    "bucket": "workspace",
    "data": "s3://incoming/digits",
    "training_image": IMAGE,
    "inference_image": IMAGE,
}


def data(folder: Path) -> Path:
    for path in (ROOT / "examples/digits/data").glob("*.csv.gz"):
        part = folder / ("holdout" if path.name.startswith("holdout") else "train")
        part.mkdir(exist_ok=True)
        (part / path.name).write_bytes(path.read_bytes())
    return folder


def jobs(state: Mapping[str, Any]) -> Iterator[tuple[datetime.datetime, datetime.datetime]]:
    for kind in ("Training", "Processing"):
        for job in state["sagemaker"][f"{kind}Jobs"].values():
            first, last = job["CreationTime"], job[f"{kind}EndTime"]
            yield datetime.datetime.fromisoformat(first), datetime.datetime.fromisoformat(last)


def covered_s(spans: Iterator[tuple[datetime.datetime, datetime.datetime]]) -> float:
    """Seconds in which at least one job ran."""
    total, until = 0.0, None
    for first, last in sorted(spans):
        begins = first if until is None or first > until else until
        if last > begins:
            total += (last - begins).total_seconds()
            until = last
    return total


def main() -> None:
    pipeline = Pipeline.load(ROOT / "dags/digits.yaml")
    for on in BACKENDS:
        steps: set[str] = set()
        with tempfile.TemporaryDirectory() as folder, EmbeddedAws() as aws:
            report = run(
                pipeline,
                on=on,
                aws=aws,
                parameters=PARAMETERS,
                uploads={PARAMETERS["data"]: data(Path(folder))},
                on_progress=lambda progress, seen=steps: seen.add(progress.step),  # type: ignore[misc]  # a default binds the set of this round
            )
            busy = covered_s(jobs(aws.state()))
        beyond = report.duration_s - busy
        print(
            f"{on:15} {report.state}: {report.duration_s:6.1f} s, jobs {busy:6.1f} s, "
            f"beyond them {beyond:5.1f} s for {len(steps)} steps, {beyond / len(steps):.2f} s each"
        )


if __name__ == "__main__":
    main()
