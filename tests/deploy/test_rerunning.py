"""Executions are started, stopped, and started again where that can't mix with anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends.stepfunctions.parameters import ATTEMPT, RUN
from orchestration.deploy import Deployment, rerun, step_functions
from orchestration.deploy.executions import listed, start, stop
from orchestration.deploy.executions.runs import found
from orchestration.errors import StartError
from orchestration.expressions.evaluate import run_token
from orchestration.local import EmbeddedAws, Fault
from orchestration.runs import Execution, Jobs, tokens_of
from tests.deploy.pipelines import SLEEPING
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow  # starts the embedded AWS

PARAMETERS = {"bucket": "workspace", "role": ROLE}


@dataclass(frozen=True)
class Site:
    """The deployed pipeline, and what is asked of its executions."""

    aws: EmbeddedAws
    deployment: Deployment
    pipeline: Pipeline

    @property
    def states(self) -> Any:
        return self.aws.client("stepfunctions")

    def start(self, **given: Any) -> str:
        arn = self.deployment.state_machine_arn
        text = json.dumps({**PARAMETERS, **given})
        return str(self.states.start_execution(stateMachineArn=arn, input=text)["executionArn"])

    def ended(self, arn: str) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            return dict(self.states.describe_execution(executionArn=arn))

        return wait(ask, lambda run: run["status"] != "RUNNING")

    def failed(self, **given: Any) -> str:
        """Start an execution whose job fails; its ARN comes back when it has ended."""
        self.aws.inject(Fault.job("sleeping-train"))
        arn = self.start(**given)
        assert self.ended(arn)["status"] == "FAILED"
        return arn

    def again(self, execution: str) -> Any:
        return rerun(execution, session=self.aws, sleep=lambda _: None)

    def jobs(self, run: str) -> dict[str, str]:
        jobs = self.aws.state()["sagemaker"]["TrainingJobs"]
        start = f"sleeping-train-{run_token(run)}"
        return {
            name.removeprefix(start): job["TrainingJobStatus"]
            for name, job in jobs.items()
            if name.startswith(start)
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    path: Path = tmp_path_factory.mktemp("deployed") / "sleeping.yaml"
    path.write_text(SLEEPING)
    with EmbeddedAws(time_scale=0.003) as aws:
        aws.client("s3").create_bucket(Bucket="workspace")
        aws.provide(roles=[ROLE])
        pipeline = Pipeline.load(path)
        deployment = step_functions(
            pipeline, session=aws, parameters=PARAMETERS, sleep=lambda _: None
        )
        yield Site(aws, deployment, pipeline)


def test_a_failed_job_is_followed_by_another(site: Site) -> None:
    first = site.failed()
    again = site.again(first)
    assert (again.attempt, again.run) == (2, first)
    ended = site.ended(again.arn)
    assert ended["status"] == "SUCCEEDED", ended
    assert json.loads(ended["output"])["train"]["job_name"].endswith("-2")
    assert site.jobs(first) == {"": "Failed", "-2": "Completed"}


def test_the_run_of_a_schedule_keeps_its_name_and_is_named_by_the_end_of_its_arn(
    site: Site,
) -> None:
    first = site.failed(**{RUN: "sleeping/2026-11-22T06:00:00Z"})
    again = site.again(first.partition(":execution:")[2])
    given = json.loads(site.ended(again.arn)["input"])
    assert (given[RUN], given[ATTEMPT]) == ("sleeping/2026-11-22T06:00:00Z", 2)
    assert again.arn.endswith(f":{run_token(given[RUN])}-2")


def test_a_third_attempt_follows_the_second_whichever_is_named(site: Site) -> None:
    first = site.failed()
    site.aws.inject(Fault.job("sleeping-train"))
    second = site.again(first)
    assert site.ended(second.arn)["status"] == "FAILED"
    third = site.again(first)
    assert third.attempt == 3
    assert site.ended(third.arn)["status"] == "SUCCEEDED"
    assert site.jobs(first) == {"": "Failed", "-2": "Failed", "-3": "Completed"}
    with pytest.raises(StartError, match=f"execution {third.arn} of this run has succeeded"):
        site.again(second.arn)


def test_jobs_of_every_attempt_are_found_behind_those_of_runs_between(site: Site) -> None:
    first = site.failed()
    site.failed()
    again = site.again(first)
    assert site.ended(again.arn)["status"] == "SUCCEEDED"
    # A page of SageMaker's listing holds one job, and that of the run between is one.
    jobs = Jobs(site.pipeline, site.aws.client("sagemaker"), page=1)
    latest = Execution(site.pipeline, again.arn, site.aws)
    found = jobs.of({latest.token}, since=latest.look().begun)
    own = f"sleeping-train-{run_token(first)}"
    assert [job.name for job in found] == [own, f"{own}-2"]


def test_a_run_that_goes_on_is_not_started_again(site: Site) -> None:
    named = {RUN: "a run of its own"}
    first = site.failed(**named)
    running = site.start(**named, **{ATTEMPT: 2, "seconds": "600"})
    wait(lambda: site.jobs(named[RUN]), lambda jobs: "InProgress" in jobs.values())
    for execution in (first, running):
        with pytest.raises(StartError, match=f"{running} of this run is running"):
            site.again(execution)
    assert site.jobs(named[RUN])["-2"] == "InProgress"
    site.states.stop_execution(executionArn=running)
    assert site.ended(running)["status"] == "ABORTED"
    again = site.again(first)
    assert again.attempt == 3
    assert site.ended(again.arn)["status"] == "SUCCEEDED"
    assert site.jobs(named[RUN]) == {"": "Failed", "-2": "Stopped", "-3": "Completed"}


def test_what_can_not_be_cleaned_up_is_not_started_again(site: Site) -> None:
    rule = site.deployment.desired.companion.rule
    assert rule is not None
    site.aws.client("events").disable_rule(Name=rule.name)
    first = site.failed()
    denied = ("AccessDeniedException", "not authorized")
    site.aws.inject(Fault("sagemaker", "ListTrainingJobs", *denied, times=6))
    with pytest.raises(StartError, match=r"could not be cleaned up: .*not authorized"):
        site.again(first)
    site.aws.client("events").enable_rule(Name=rule.name)
    assert site.ended(site.again(first).arn)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("name", ["sleeping", "sleeping:", ":x"])
def test_a_name_without_its_state_machine_is_refused(site: Site, name: str) -> None:
    with pytest.raises(StartError, match="expected the ARN of an execution, or its end"):
        site.again(name)


def test_an_execution_that_is_not_there_is_an_error(site: Site) -> None:
    with pytest.raises(StartError, match="can't be started again"):
        site.again("sleeping:nobody")


def test_a_named_run_is_started_once_and_listed(site: Site) -> None:
    given = {**PARAMETERS, "seconds": "600"}
    first = start(site.pipeline, given, session=site.aws, run="friday")
    again = start(site.pipeline, given, session=site.aws, run="friday")
    assert (again.arn, first.warnings) == (first.arn, ())
    with pytest.raises(StartError, match="run friday of sleeping has been started before"):
        start(site.pipeline, PARAMETERS, session=site.aws, run="friday")
    newest = listed("sleeping", session=site.aws, most=1)
    assert [(each.arn, each.status, each.ended) for each in newest] == [
        (first.arn, "RUNNING", None)
    ]
    wait(lambda: site.jobs("friday"), lambda jobs: "InProgress" in jobs.values())
    stopped = stop(newest[0].name, session=site.aws, sleep=lambda _: None)
    assert (stopped.arn, stopped.was_running) == (first.arn, True)
    wait(lambda: site.jobs("friday"), lambda jobs: jobs == {"": "Stopped"})
    [last] = listed("sleeping", session=site.aws, most=1)
    assert (last.arn, last.status) == (first.arn, "ABORTED")
    with pytest.raises(StartError, match="has been started before"):
        start(site.pipeline, given, session=site.aws, run="friday")
    assert not stop(first.arn, session=site.aws, sleep=lambda _: None).was_running


def test_a_run_is_not_taken_for_another_whose_name_goes_on(site: Site) -> None:
    definition = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
    machine = site.states.create_state_machine(
        name="naming", definition=json.dumps(definition), roleArn=ROLE
    )["stateMachineArn"]
    token = run_token("monday")
    names = ("friday", "friday-hotfix", f"{token}-1", f"{token}-2", "monday-hotfix")
    for name in names:
        given = json.dumps({RUN: "monday"} if name.startswith(token) else {})
        site.states.start_execution(stateMachineArn=machine, name=name, input=given)
    for run, name in (
        ("friday", "friday"),
        ("naming:friday", "friday"),
        ("monday", f"{token}-2"),
        (token, f"{token}-2"),
    ):
        execution = found("naming", run, site.aws)
        assert execution.name == name
        # Jobs are looked for under the same token.
        assert execution.token in tokens_of("naming", run, site.aws)
    for run in ("fri", "friday-", "monday-hot", "2026-11-22T06:00:00+00:00"):
        with pytest.raises(StartError, match="there is no run"):
            found("naming", run, site.aws)


def test_another_definition_than_the_deployed_one_is_a_warning(site: Site) -> None:
    [train] = site.pipeline.stages
    described = site.pipeline.model_copy(update={"description": "Sleeps."})
    assert start(described, PARAMETERS, session=site.aws).warnings == ()
    longer = train.model_copy(update={"max_runtime_s": 2000})
    changed = site.pipeline.model_copy(update={"stages": (longer,)})
    started = start(changed, PARAMETERS, session=site.aws)
    assert started.warnings == (
        "what is deployed is not what this pipeline says now; deploy it to run that",
    )
    assert site.ended(started.arn)["status"] == "SUCCEEDED"


def test_what_is_not_deployed_is_not_started_and_has_no_runs(site: Site) -> None:
    absent = site.pipeline.model_copy(update={"name": "absent"})
    with pytest.raises(StartError, match="pipeline absent is not deployed to 123456789012"):
        start(absent, PARAMETERS, session=site.aws)
    with pytest.raises(StartError, match="runs of absent can't be listed"):
        listed("absent", session=site.aws)


def test_a_changed_definition_is_refused(site: Site) -> None:
    """Last of all: the state machine stays changed."""
    first = site.failed()
    arn = site.deployment.state_machine_arn
    definition = json.loads(site.states.describe_state_machine(stateMachineArn=arn)["definition"])
    definition["Comment"] = "Says something else."
    site.states.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))
    assert site.ended(site.again(first).arn)["status"] == "SUCCEEDED"
    second = site.failed()
    definition["States"]["train-job"]["Arguments"]["StoppingCondition"]["MaxRuntimeInSeconds"] = 9
    site.states.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))
    with pytest.raises(StartError, match="state machine sleeping has been changed since execution"):
        site.again(second)
