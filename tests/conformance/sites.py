"""A pipeline as a user deploys it, its executions and its companion."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestration import Pipeline
from orchestration.deploy import Deployment, step_functions
from orchestration.local import EmbeddedAws
from orchestration.local.run.executions import role
from orchestration.local.run.preparation import prepare
from tests.conformance import pipelines
from tests.patience import PATIENCE_S


@dataclass
class Site:
    """A deployed pipeline on an account of its own."""

    aws: EmbeddedAws
    deployment: Deployment
    parameters: dict[str, Any]
    started: list[str] = field(default_factory=list)

    @property
    def states(self) -> Any:
        return self.aws.client("stepfunctions")

    @property
    def companion(self) -> str:
        machine = self.deployment.desired.companion.machine
        assert machine is not None
        return machine.arn

    def start(self, **given: Any) -> str:
        arn = self.states.start_execution(
            stateMachineArn=self.deployment.state_machine_arn,
            input=json.dumps({**self.parameters, **given}),
        )["executionArn"]
        self.started.append(arn)
        return str(arn)

    def stop(self, execution: str, *, ended: bool = True) -> None:
        self.states.stop_execution(executionArn=execution, error="Stopped", cause="by a person")
        if ended:
            # The engine ends an execution when it next looks at what it waits for.
            self.end(execution)

    def deaf(self) -> None:
        """Lose the events from now on."""
        rule = self.deployment.desired.companion.rule
        assert rule is not None
        self.aws.client("events").disable_rule(Name=rule.name)

    def change(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the definition of the state machine."""
        arn = self.deployment.state_machine_arn
        definition = json.loads(
            self.states.describe_state_machine(stateMachineArn=arn)["definition"]
        )
        change(definition)
        self.states.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))

    def sweep(self) -> str:
        """Start the companion as its schedule does, and wait for its end."""
        sweep = self.deployment.desired.companion.sweep
        assert sweep is not None
        arn = self.states.start_execution(
            stateMachineArn=sweep.target_arn, input=json.dumps(dict(sweep.input))
        )["executionArn"]
        return self.end(arn)

    def end(self, execution: str) -> str:
        wait(lambda: self.status(execution) != "RUNNING")
        return self.status(execution)

    def status(self, execution: str) -> str:
        return str(self.states.describe_execution(executionArn=execution)["status"])

    def cleaned(self) -> list[str]:
        """The ends of the companion's executions so far."""
        listed = self.states.list_executions(stateMachineArn=self.companion)["executions"]
        return [execution["status"] for execution in listed]

    def cleans(self, times: int = 1) -> None:
        """Wait until the companion has run so often."""
        wait(lambda: self.cleaned() == ["SUCCEEDED"] * times)

    def jobs(self) -> dict[str, str]:
        jobs = self.aws.state()["sagemaker"]["TrainingJobs"]
        return {name: job["TrainingJobStatus"] for name, job in jobs.items()}

    def systems(self) -> dict[str, Any]:
        return dict(self.aws.state()["fsx"]["FileSystems"])

    def transfers(self, kind: str) -> list[str]:
        """Return the states of DataSync's tasks, or of their executions."""
        return [each["Status"] for each in self.aws.state()["datasync"][kind]]

    def endpoints(self) -> set[str]:
        return set(self.aws.state()["sagemaker"]["Endpoints"])

    def trains(self, times: int = 1) -> None:
        wait(lambda: list(self.jobs().values()).count("InProgress") == times)

    def calls(self, *operations: str) -> list[str]:
        every = self.aws.calls()
        return [c.operation for c in every if c.operation in operations and not c.error_code]


def wait(holds: Callable[[], bool]) -> None:
    end, pause_s = time.monotonic() + PATIENCE_S, 0.02
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        # Looks take a processor from what is waited for.
        time.sleep(pause_s)
        pause_s = min(0.3, 1.3 * pause_s)


@contextmanager
def deployed(pipeline: Pipeline, folder: Path) -> Iterator[Site]:
    with EmbeddedAws(time_scale=0.005) as aws:
        arn = role(aws, "SageMakerExecution", "sagemaker.amazonaws.com")
        parameters = {**pipelines.PARAMETERS, "role": arn}
        prepare(aws, pipeline, pipeline.lower(), parameters, {parameters["data"]: folder})
        yield site_on(aws, pipeline, parameters)


def site_on(aws: EmbeddedAws, pipeline: Pipeline, parameters: dict[str, Any]) -> Site:
    """Deploy a pipeline in an account that is prepared for it."""
    deployment = step_functions(pipeline, session=aws, parameters=parameters)
    return Site(aws, deployment, parameters)
