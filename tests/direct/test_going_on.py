"""A run that goes on and ends before it reaches what its dead predecessor had begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.direct import Interrupted, perform
from orchestration.direct.clients import Clients
from orchestration.direct.edge import DirectEdge
from orchestration.direct.interrupting import Interruption
from orchestration.direct.journal import journal
from orchestration.direct.progress import Board
from orchestration.execution.effects import Place, Rest, Waited
from orchestration.local import Fault
from tests.direct.conftest import ROLE, TRAINING, Account, Launch, until
from tests.interrupted import interrupt

pytestmark = [pytest.mark.slow]

BESIDE = """\
  beside:
    kind: training_job
    image: image
    entrypoint: [sleep, "600"]
    cluster: {instance_type: ml.c5.xlarge}
"""
PARAMETERS = {"bucket": "workspace", "data": "s3://incoming/set", "seconds": "600", "role": ROLE}


@pytest.fixture
def begun(account: Account, launch: Launch, training: Path) -> Pipeline:
    """A pipeline one of whose runs was killed while both of its jobs ran."""
    training.write_text(TRAINING + BESIDE)
    process = launch(training)
    until(lambda: statuses(account) == ["InProgress"] * 2)
    process.kill()
    process.communicate()
    return Pipeline.load(training)


def statuses(account: Account) -> list[str]:
    jobs = account.aws.state()["sagemaker"]["TrainingJobs"].values()
    return [job["TrainingJobStatus"] for job in jobs]


def go_on(pipeline: Pipeline, account: Account, **options: Any) -> Any:
    return perform(
        pipeline.lower(),
        PARAMETERS,
        session=account.aws,
        run_id="nightly",
        workspace="s3://workspace/sleeping",
        time_scale=account.aws.time_scale,
        **options,
    )


def edge(account: Account) -> DirectEdge:
    """What answers the effects of a process that runs a pipeline."""
    kept = journal("s3://workspace/waiting", "0123456789ab")
    # Slow enough that what passes on a busy machine is no great part of what was waited.
    made = DirectEdge(Clients(account.aws), kept, Board(None), Interruption(), time_scale=0.1)
    made.apart(kept.opened({}))
    return made


def test_a_process_that_goes_on_knows_how_long_another_has_waited(account: Account) -> None:
    first = edge(account)
    assert first.answer(Waited("train.job")) == 0
    for waited in (1200.0, 2100.0):
        first.answer(Rest("train.job", 1, Place(waited=waited + 1)))
    going_on = edge(account)
    assert 1200 < going_on.answer(Waited("train.job")) < 2100
    assert going_on.answer(Waited("other.job")) == 0


def test_an_interruption_before_the_first_step_stops_the_jobs_and_cleans_up(
    account: Account, begun: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Interrupted) as caught:
        go_on(begun, account, prepare=lambda: interrupt(caplog))
    for stage in ("train", "beside"):
        assert f"CreateTrainingJob sleeping-{stage}-" in str(caught.value)
    assert "and clean-ups have run" in str(caught.value)
    until(lambda: statuses(account) == ["Stopped"] * 2)
    assert account.file_systems() == []


def test_a_failure_before_a_job_is_reached_stops_it_and_keeps_its_cause(
    account: Account, begun: Pipeline
) -> None:
    def refuse() -> None:
        account.aws.inject(Fault("s3", "GetObject", "AccessDenied", "no", status=403, times=99))
        for _ in range(2):  # A job that nobody may look at is stopped by the step itself.
            account.aws.inject(Fault("sagemaker", "CreateTrainingJob", "AccessDenied", "no"))

    outcome = go_on(begun, account, prepare=refuse)
    assert (outcome.state, outcome.error) == ("failed", "AccessDenied")
    until(lambda: statuses(account) == ["Stopped"] * 2)


def test_an_interruption_deletes_a_file_system_that_a_dead_process_never_heard_of(
    account: Account, launch: Launch, training: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lost = Fault("fsx", "CreateFileSystem", "InternalServerError", "lost", status=500, times=99)
    account.aws.inject(replace(lost, after_effect=True))
    process = launch(training)
    until(account.file_systems)
    process.kill()
    process.communicate()
    account.aws.clear_faults()
    with pytest.raises(Interrupted, match="no job ran, and clean-ups have run"):
        go_on(Pipeline.load(training), account, prepare=lambda: interrupt(caplog))
    assert account.file_systems() == []
