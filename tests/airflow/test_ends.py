"""An Airflow that ended in the middle of a run is said to have, and the next run has another."""

from __future__ import annotations

import pytest

from orchestration.errors import LocalError
from orchestration.graph import Wait
from orchestration.local.airflow import LocalAirflow, TaskState
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import workflow

pytestmark = [pytest.mark.slow]


def test_a_run_after_airflows_end_starts_it_again(aws: ScriptedAws) -> None:
    made = workflow(Wait(name="wait.one", seconds=0))
    with LocalAirflow() as own:

        def end(_: TaskState) -> None:
            process = own._process
            assert process is not None
            process.terminate()

        with pytest.raises(LocalError, match="Airflow ended before the run"):
            own.run(made, aws=aws, run_id="first", on_progress=end)
        assert own.run(made, aws=aws, run_id="second").state == "success"


def test_a_run_after_its_process_was_killed_has_another(aws: ScriptedAws) -> None:
    made = workflow(Wait(name="wait.one", seconds=0))
    processes = []
    with LocalAirflow() as own:

        def kill(_: TaskState) -> None:
            processes.append(own._process)
            own.kill()

        with pytest.raises(LocalError, match="Airflow was killed during the run"):
            own.run(made, aws=aws, run_id="first", on_progress=kill)
        own.kill()
        assert own.run(made, aws=aws, run_id="second").state == "success"
        # What had loaded Airflow has not loaded it again.
        assert {*processes, own._process} == {own._process}
