"""``orchestrate demo``: the digits pipeline on both backends, up to an endpoint's answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.commands.rendering import Driver
from orchestration.cli.commands.running import require_driver, table, tell_failure
from orchestration.cli.output import FAILED, console, document, note, require, say
from orchestration.cli.progress import following
from orchestration.errors import OrchestrationError

if TYPE_CHECKING:
    from orchestration.local.airflow import LocalAirflow
    from orchestration.local.run.report import RunReport
    from orchestration.pipeline import Pipeline

_DRIVERS = (Driver.STEP_FUNCTIONS, Driver.AIRFLOW)
_PIPELINE = Path("dags/digits.yaml")
_DATA = Path("examples/digits/data")
_EXTRAS = {"torch": "demo", "numpy": "demo", "sagemaker_training": "demo"}
_EXTRAS_TOOLKIT = {"sagemaker_pytorch_container": "demo"}
_PARAMETERS = {
    "bucket": "embedded-workspace",
    "data": "s3://embedded-data/digits",
    # No image is pulled: the embedded AWS runs the toolkit of these containers itself.
    "training_image": "embedded.local/pytorch-training:2.13-cpu-py311",
    "inference_image": "embedded.local/pytorch-inference:2.13-cpu-py311",
}
_READS = ("Describe", "List", "Get", "Head", "Invoke")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The demo's runs, and the label that the endpoints should have returned."""

    reports: tuple[RunReport, ...]
    label: int

    @property
    def good(self) -> bool:
        """True if every run succeeded and every endpoint recognised the digit."""
        return all(r.state == "succeeded" and answer(r) == self.label for r in self.reports)

    def data(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        return {
            "good": self.good,
            "label": self.label,
            "answers": {report.on: answer(report) for report in self.reports},
            "runs": [report.to_json() for report in self.reports],
        }


def demo(*, as_json: bool) -> None:
    """Run the digits pipeline as a state machine, then as an Airflow DAG, and compare."""
    checkout = _checkout(Path.cwd())
    require_driver(*_DRIVERS)
    require({**_EXTRAS, **_EXTRAS_TOOLKIT}, what="the demo")
    from orchestration.local.airflow import LocalAirflow
    from orchestration.pipeline import Pipeline

    pipeline = Pipeline.load(checkout / _PIPELINE)
    label = json.loads((checkout / _DATA / "sample-label.json").read_text(encoding="utf-8"))[
        "label"
    ]
    uploads = _uploads(checkout / _DATA)
    # Airflow takes some seconds to start: it does so while the state machine waits for its jobs.
    with LocalAirflow() as airflow:
        reports = tuple(_run(pipeline, driver, uploads, airflow) for driver in _DRIVERS)
    outcome = Outcome(reports, label)
    if as_json:
        document(outcome.data())
    else:
        _show(outcome)
    for report in outcome.reports:
        tell_failure(report)
    if not outcome.good:
        raise typer.Exit(FAILED)


def answer(report: RunReport) -> int | None:
    """Return the digit that the endpoint predicted; None if it did not answer."""
    shown: Any = (report.outputs or {}).get("deploy")
    try:
        return int(shown["answer"]["predictions"][0]["label"])
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _checkout(start: Path) -> Path:
    for folder in (start, *start.parents):
        if (folder / _PIPELINE).is_file() and (folder / _DATA).is_dir():
            return folder
    raise OrchestrationError(
        f"the demo needs a checkout of the repository: {_PIPELINE} and {_DATA} are missing in "
        f"{start} or above it; clone the repository, go there, and run `orchestrate demo` again"
    )


def _uploads(data: Path) -> dict[str, Path]:
    """List the data set's files by S3 URI: the training set and the holdout set."""
    folders = {"train": sorted(data.glob("train-*.csv.gz")), "holdout": [data / "holdout.csv.gz"]}
    return {
        f"{_PARAMETERS['data']}/{folder}/{file.name}": file
        for folder, files in folders.items()
        for file in files
    }


def _run(
    pipeline: Pipeline, driver: Driver, uploads: Mapping[str, Path], airflow: LocalAirflow
) -> RunReport:
    from orchestration.local.run import run

    title = f"{pipeline.name} on {driver.value}"
    with following(title, [stage.name for stage in pipeline.stages]) as shown:
        # Each gets its own account, so that both start empty.
        return run(
            pipeline,
            on=driver.value,
            parameters=_PARAMETERS,
            uploads=uploads,
            on_progress=shown.change,
            on_work=shown.work,
            airflow=airflow,
        )


def _show(outcome: Outcome) -> None:
    console().print(table(outcome.reports))
    for report in outcome.reports:
        shown: Any = (report.outputs or {}).get("evaluate") or {}
        if "best_checkpoint" in shown:
            say(
                f"{report.on}: best checkpoint {shown['best_checkpoint']} "
                f"(accuracy {shown['best_metric']:.4f})"
            )
        seen = answer(report)
        verdict = "right" if seen == outcome.label else "wrong"
        say(f"{report.on}: the endpoint sees a {seen} in an image of a {outcome.label}: {verdict}")
    changes = [_changes(report) for report in outcome.reports]
    if all(changed == changes[0] for changed in changes):
        say(f"both made the same {changes[0].total()} AWS calls that change something")
    else:
        note(f"the AWS calls differ: {changes[0] - changes[1]} and {changes[1] - changes[0]}")


def _changes(report: RunReport) -> Counter[str]:
    """Count the successful calls that change the account; polling may differ."""
    return Counter(
        f"{call.service}:{call.operation}"
        for call in report.calls
        if call.status < 400 and not call.operation.startswith(_READS)
    )
