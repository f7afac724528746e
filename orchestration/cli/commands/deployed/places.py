"""The place where a pipeline is deployed, as the options of a command name it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from orchestration.cli.commands.deployment import MODULES, session_of, session_to_change
from orchestration.cli.commands.rendering import Backend
from orchestration.cli.output import note, require
from orchestration.errors import StartError

if TYPE_CHECKING:
    from orchestration.deploy.account import Regional
    from orchestration.runs import Runs
    from orchestration.runs.airflow import Api, DagRuns
    from orchestration.runs.operating import Stopped

TOKEN: Final = "AIRFLOW_CLI_TOKEN"  # noqa: S105 - the name of a variable, which `airflowctl` reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Step Functions in an account, or an Airflow."""

    on: Backend = Backend.STEP_FUNCTIONS
    url: str | None = None
    """The address of Airflow's API server."""
    region: str | None = None
    profile: str | None = None

    def runs(self, pipeline: Regional, *, to_change: bool = False) -> Runs:
        """Return the runs of a pipeline there; ``to_change``: the place is shown, and checked."""
        if self.on is Backend.AIRFLOW:
            dag_runs = self.dag_runs(pipeline.name)
            if to_change:
                note(f"Airflow at {self.url}")
            return dag_runs
        require(MODULES, what="asking Step Functions")
        from orchestration.runs import Executions

        if to_change:
            session = session_to_change(pipeline, self.region, self.profile)
        else:
            session = session_of(self.region or pipeline.region, self.profile)
        return Executions(pipeline.name, session)

    def dag_runs(self, pipeline: str) -> DagRuns:
        """Return the runs of a pipeline's DAG."""
        from orchestration.runs.airflow import DagRuns

        return DagRuns(pipeline, self.api())

    def api(self) -> Api:
        """Return a client of Airflow's API server."""
        if self.url is None:
            raise typer.BadParameter(
                "is missing: the address of Airflow's API server", param_hint="--url"
            )
        token = os.environ.get(TOKEN)
        if not token:
            raise StartError(
                f"{TOKEN} is not set; it holds a token of Airflow's API, as a POST of username and "
                f"password to {self.url.rstrip('/')}/auth/token gives"
            )
        from orchestration.runs.airflow import Api

        return Api(self.url, token)

    def ended(self, stopped: Stopped) -> str:
        """Return what became of a run that was to be stopped."""
        what = "stopped" if stopped.was_running else "had ended"
        if self.on is Backend.STEP_FUNCTIONS:
            return f"execution {stopped.id} {what}; what it had started is stopped and deleted"
        if not stopped.was_running:
            return f"run {stopped.id} had ended"
        return f"run {stopped.id} is marked as failed; its tasks stop what it had started"

    def announce_rerun(self) -> None:
        """Say that starting again takes a while, where it does."""
        if self.on is Backend.STEP_FUNCTIONS:
            note("the companion of the state machine cleans up first; this takes a minute or two")
