"""``orchestrate probe --from-runs``: past jobs, which are measurements too."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cli.commands.planning import measured
from orchestration.cli.commands.probing.accounts import Job, Where
from orchestration.cli.commands.probing.measuring import tell, write
from orchestration.cli.output import FAILED, note, require

if TYPE_CHECKING:
    from orchestration.pipeline.probing.jobs import Asked
    from orchestration.planning.model.measurements import Measurement

_MOST_RUNS: Final = 50
"""Past jobs of each kind that are looked at, the latest first."""


def from_runs(
    path: Path, stage: str | None, where: Where, *, measurements: Path | None, as_json: bool
) -> None:
    """Add a stage's past jobs to its file of measurements; exit with 1 if there are none.

    Past jobs are those of the stage, and its probes that ran as a pipeline of their own.
    """
    require({"boto3": "aws"}, what="looking up jobs")
    from orchestration.cli.commands.checking import jobs_of, probes_of
    from orchestration.cli.commands.deployment import session_of
    from orchestration.pipeline.probing.jobs import Asked
    from orchestration.planning.model.measurements import beside

    asked = Asked(path, stage)
    session = session_of(where.region or asked.region, where.profile)
    client = session.client("sagemaker")
    found: list[Measurement] = []
    for name, _ in chain.from_iterable(
        islice(listed(client, asked.pipeline, asked.name), _MOST_RUNS)
        for listed in (jobs_of, probes_of)
    ):
        reading = _reading(asked, client.describe_training_job(TrainingJobName=name), session)
        if isinstance(reading, str):
            note(f"{name} left out: {reading}")
        else:
            found.append(reading)
    if not found:
        note(f"no past job of {asked.name} says how long its steps took")
        raise typer.Exit(FAILED)
    known = [*measured(path, measurements), *found]
    write(measurements or beside(path), known)
    tell(asked, known, found, as_json=as_json)


def _reading(asked: Asked, job: Job, session: Any) -> Measurement | str:
    """Return what a job measured, or why it says nothing."""
    from orchestration.pipeline.probing.readings import measurement
    from orchestration.pipeline.probing.runs import ran
    from orchestration.pipeline.probing.together import way_of

    told = {str(quantity): name for quantity, name in asked.request.tell.items()}
    probed = way_of(job, asked.pipeline, asked.name)
    way = ran(job, asked.task, told, asked.pin, probed)
    if isinstance(way, str):
        return way
    reading = measurement(
        way, job, region=session.region_name, source="run" if probed is None else "probe"
    )
    return reading or "its steps were not measured; see `measured_steps`"
