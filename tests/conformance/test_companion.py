"""After every end of an execution, nothing that costs stands: its companion cleans up.

The pipeline is deployed as a user deploys it; what starts the companion is the rule that `deploy`
makes, and what the rule of a lost event would have cleaned up is the sweep's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration import Deployment, EndpointUpdate, Pipeline, join, parameter
from orchestration.expressions.evaluate import run_token
from orchestration.local import Fault
from orchestration.local.run.executions import role
from tests.conformance import pipelines
from tests.conformance.sites import Site, deployed, wait
from tests.conformance.test_conformance import data

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

LONG = {"seconds": 600}
ENDED = ("Completed", "Failed", "Stopped")


def training() -> Pipeline:
    """A job that no `.sync` follows, so that stopping the execution does not stop it."""
    train = pipelines.training(
        "train",
        join(parameter("data"), "/train"),
        hyperparameters=LONG,
        extra_request={"RemoteDebugConfig": {"EnableRemoteDebug": False}},
    )
    return pipelines.pipeline("training", train)


def lustre() -> Pipeline:
    """A job that takes long, over a file system."""
    pipeline = pipelines.file_system()
    staged, train, evaluated = pipeline.stages
    return pipeline.model_copy(
        update={
            "stages": (staged, train.model_copy(update={"hyperparameters": LONG}), evaluated),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return data(tmp_path)


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    with deployed(training(), folder) as made:
        yield made


def test_an_aborted_execution_leaves_no_job(site: Site) -> None:
    execution = site.start()
    site.trains()
    site.stop(execution)
    site.cleans()
    wait(lambda: list(site.jobs().values()) == ["Stopped"])


def test_a_timed_out_execution_leaves_no_job(site: Site) -> None:
    site.change(lambda definition: definition.update(TimeoutSeconds=30))
    execution = site.start()
    site.trains()
    assert site.end(execution) == "TIMED_OUT"
    site.cleans()
    wait(lambda: list(site.jobs().values()) == ["Stopped"])


def test_a_lost_event_is_made_up_for_by_the_sweep(site: Site) -> None:
    site.deaf()
    execution = site.start()
    site.trains()
    site.stop(execution)
    time.sleep(1)
    assert site.cleaned() == []
    assert list(site.jobs().values()) == ["InProgress"]
    assert site.sweep() == "SUCCEEDED"
    wait(lambda: list(site.jobs().values()) == ["Stopped"])


def test_a_second_companion_finds_nothing_to_do(site: Site) -> None:
    execution = site.start()
    site.trains()
    site.stop(execution)
    site.cleans()
    wait(lambda: list(site.jobs().values()) == ["Stopped"])
    assert site.sweep() == "SUCCEEDED"
    assert site.calls("StopTrainingJob") == ["StopTrainingJob"]


def test_two_companions_at_once_are_no_harm(site: Site) -> None:
    site.deaf()
    execution = site.start()
    site.trains()
    site.stop(execution)
    for _ in range(2):
        site.states.start_execution(stateMachineArn=site.companion, input="{}")
    site.cleans(times=2)
    wait(lambda: list(site.jobs().values()) == ["Stopped"])


def test_what_belongs_to_others_is_not_touched(site: Site) -> None:
    """Another execution; somebody's job of such a name; a run of the same pipeline by Airflow."""
    running = site.start()
    site.trains()
    [own] = site.jobs()
    request = site.aws.client("sagemaker").describe_training_job(TrainingJobName=own)
    kept = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "ResourceConfig")
    copied = {name: request[name] for name in (*kept, "StoppingCondition", "HyperParameters")}
    tags = [{"Key": "orchestration:pipeline", "Value": "training"}]
    tags.append({"Key": "orchestration:run", "Value": run_token("training/by-airflow")})
    copied["InputDataConfig"] = request["InputDataConfig"]
    for name, marked in (("somebodys", []), ("by-airflow", tags)):
        site.aws.client("sagemaker").create_training_job(
            TrainingJobName=f"training-train-{name}", Tags=marked, **copied
        )
    aborted = site.start()
    site.trains(times=4)
    site.stop(aborted)
    site.cleans()
    wait(lambda: list(site.jobs().values()).count("Stopped") == 1)
    assert site.jobs()[f"training-train-{run_token(aborted)}"] == "Stopped"
    assert site.status(running) == "RUNNING"
    assert site.sweep() == "SUCCEEDED"
    assert list(site.jobs().values()).count("InProgress") == 3


def test_a_run_that_another_execution_goes_on_with_is_not_touched(site: Site) -> None:
    """EventBridge Scheduler starts some runs twice; both executions are one run."""
    named = {"orchestration:run": "training/2026-11-22T06:00:00Z"}
    first = site.start(**named)
    site.trains()
    second = site.start(**named)
    wait(lambda: len(site.calls("DescribeTrainingJob")) > 2)
    site.stop(first)
    site.cleans()
    assert list(site.jobs().values()) == ["InProgress"]
    site.stop(second)
    site.cleans(times=2)
    wait(lambda: list(site.jobs().values()) == ["Stopped"])


def test_a_job_that_can_not_be_stopped_fails_the_companion(site: Site) -> None:
    code = "AccessDeniedException"
    site.aws.inject(Fault("sagemaker", "StopTrainingJob", code, "not authorized", times=50))
    execution = site.start()
    site.trains()
    site.stop(execution)
    wait(lambda: site.cleaned() == ["FAILED"])
    [ran] = site.states.list_executions(stateMachineArn=site.companion)["executions"]
    described = site.states.describe_execution(executionArn=ran["executionArn"])
    assert described["error"] == "NotReleased"
    assert f"training-train-{run_token(execution)}: " in described["cause"]
    assert "not authorized" in described["cause"]


def test_an_aborted_execution_leaves_no_file_system(folder: Path) -> None:
    with deployed(lustre(), folder) as site:
        execution = site.start()
        site.trains()
        site.stop(execution)
        site.cleans()
        assert site.systems() == {}
        assert not set(site.jobs().values()) - set(ENDED)


def test_an_execution_aborted_during_the_import_leaves_no_file_system(folder: Path) -> None:
    with deployed(lustre(), folder) as site:
        slow = Fault.job("IMPORT", operation="CreateDataRepositoryTask")
        site.aws.inject(replace(slow, delay_s=36_000))
        execution = site.start()
        wait(lambda: bool(site.calls("CreateDataRepositoryTask")))
        site.stop(execution)
        site.cleans()
        assert site.systems() == {}
        tasks = site.aws.state()["fsx"]["DataRepositoryTasks"]
        assert [task["Lifecycle"] for task in tasks] == ["CANCELED"]


def _runtime_error(definition: dict[str, Any]) -> None:
    """Fail, once the file system stands, where no catcher is: as `States.Runtime` does."""
    states = definition["States"]
    body = next(name for name in states if name.endswith("guard-Body"))
    states[body] = {"Type": "Pass", "Output": "{% $error('as States.Runtime') %}", "End": True}


def _limit(definition: dict[str, Any]) -> None:
    definition["TimeoutSeconds"] = 12


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param(_runtime_error, "FAILED", id="an error that nothing catches"),
        pytest.param(
            _limit, "TIMED_OUT", id="a time-out of the machine", marks=pytest.mark.thorough
        ),
    ],
)
def test_an_end_without_a_clean_up_leaves_no_file_system(
    change: Callable[[dict[str, Any]], None], status: str, folder: Path
) -> None:
    with deployed(lustre(), folder) as site:
        site.change(change)
        execution = site.start()
        wait(lambda: bool(site.systems()))
        assert site.end(execution) == status
        site.cleans()
        assert site.systems() == {}


def test_a_file_system_is_kept_as_long_as_its_tag_says(folder: Path) -> None:
    with deployed(lustre(), folder) as site:
        site.deaf()
        execution = site.start()
        wait(lambda: bool(site.systems()))
        site.stop(execution)
        [system] = site.systems().values()
        keep(site, system["ResourceARN"], "1")
        for _ in range(2):
            assert site.sweep() == "SUCCEEDED"
            [system] = site.systems().values()
            tags = {tag["Key"]: tag["Value"] for tag in system["Tags"]}
            assert tags["orchestration:ended"].startswith(f"{run_token(execution)} 20")
        keep(site, system["ResourceARN"], "0")
        assert site.sweep() == "SUCCEEDED"
        assert site.systems() == {}


def test_an_execution_that_is_stopped_during_its_export_leaves_the_file_system(
    folder: Path,
) -> None:
    slow = replace(Fault.job("EXPORT", operation="CreateDataRepositoryTask"), delay_s=36_000)
    with deployed(pipelines.exporting(), folder) as site:
        site.aws.inject(slow)
        execution = site.start()
        tasks: Callable[[], str] = lambda: str(site.aws.state()["fsx"]["DataRepositoryTasks"])  # noqa: E731 - short
        wait(lambda: "EXPORT_TO_REPOSITORY" in tasks())
        site.stop(execution)
        site.cleans()
        [system] = site.systems().values()
        tags = {tag["Key"]: tag["Value"] for tag in system["Tags"]}
        assert tags["orchestration:keep-for-h"] == "24"
        assert tags["orchestration:ended"].startswith(run_token(execution))
        assert "CANCEL" not in tasks()


def shared() -> Pipeline:
    """A job that takes long, over a file system that runs share."""
    pipeline = pipelines.kept()
    staged, train = pipeline.stages
    longer = train.model_copy(update={"hyperparameters": LONG})
    return pipeline.model_copy(update={"stages": (staged, longer)})


def test_a_shared_file_system_outlives_every_execution_that_may_use_it(folder: Path) -> None:
    with deployed(shared(), folder) as site:
        execution = site.start()
        site.trains()
        [system] = site.systems().values()
        # Another run has taken it since, and has ended.
        other = [{"Key": "orchestration:run", "Value": "0123456789ab"}]
        site.aws.client("fsx").tag_resource(ResourceARN=system["ResourceARN"], Tags=other)
        assert site.sweep() == "SUCCEEDED"
        [system] = site.systems().values()
        assert "orchestration:ended" not in {tag["Key"] for tag in system["Tags"]}
        site.deaf()
        site.stop(execution)
        assert site.sweep() == "SUCCEEDED"
        [system] = site.systems().values()
        tags = {tag["Key"]: tag["Value"] for tag in system["Tags"]}
        assert (tags["orchestration:keep-for-h"], len(tags["orchestration:ended"]) > 0) == (
            "48",
            True,
        )
        keep(site, system["ResourceARN"], "0")
        assert site.sweep() == "SUCCEEDED"
        assert site.systems() == {}


@contextmanager
def transferring(folder: Path) -> Iterator[tuple[Site, str]]:
    """A deployed pipeline with an execution whose transfer takes hours."""
    slow = Fault.job("synced", operation="StartTaskExecution")
    with deployed(pipelines.synced(), folder) as site:
        role(site.aws, "DataSync", "datasync.amazonaws.com")
        site.aws.inject(replace(slow, delay_s=36_000))
        execution = site.start()
        wait(lambda: site.transfers("TaskExecutions") == ["TRANSFERRING"])
        yield site, execution


def test_an_aborted_execution_leaves_no_transfer(folder: Path) -> None:
    with transferring(folder) as (site, execution):
        site.stop(execution)
        site.cleans()
        assert site.calls("CancelTaskExecution") == ["CancelTaskExecution"]
        assert not site.transfers("Tasks")
        assert not site.aws.state()["datasync"]["Locations"]


def test_a_transfer_of_others_is_not_touched(folder: Path) -> None:
    """Those of a running execution, of another state machine, and of nobody."""
    with transferring(folder) as (site, execution):
        datasync = site.aws.client("datasync")
        [task] = site.aws.state()["datasync"]["Tasks"]
        kept = {name: task[name] for name in ("SourceLocationArn", "DestinationLocationArn")}
        kept["Options"] = task["Options"]
        for tags in ([], [{"Key": "orchestration:machine", "Value": "another"}]):
            datasync.create_task(Name=f"{task['Name']}0", TaskMode="ENHANCED", Tags=tags, **kept)
        assert site.sweep() == "SUCCEEDED"
        assert len(site.transfers("Tasks")) == 3
        assert not site.calls("CancelTaskExecution")
        site.deaf()
        site.stop(execution)
        assert site.sweep() == "SUCCEEDED"
        assert len(site.transfers("Tasks")) == 2
        assert site.sweep() == "SUCCEEDED"
        assert len(site.calls("DeleteTask")) == 1


def test_a_transfer_that_can_not_be_ended_fails_the_companion(folder: Path) -> None:
    with transferring(folder) as (site, execution):
        denied = Fault(
            "datasync", "DeleteTask", "AccessDeniedException", "not authorized", times=50
        )
        site.aws.inject(denied)
        site.stop(execution)
        wait(lambda: site.cleaned() == ["FAILED"])
        [ran] = site.states.list_executions(stateMachineArn=site.companion)["executions"]
        described = site.states.describe_execution(executionArn=ran["executionArn"])
        assert described["error"] == "NotReleased"
        assert "synced-staging-" in described["cause"]
        assert "not authorized" in described["cause"]


SLOW_MODEL = """
import os
import time

def model_fn(folder):
    time.sleep(2)

def predict_fn(data, model):
    while not any(run in os.environ["SAGEMAKER_BASE_DIR"] for run in os.listdir("ANSWERED")):
        time.sleep(0.05)
"""
SERVING = "tried-deploy-0123456789ab"
"""The name of an endpoint that looks like that of a trial."""


def tried() -> Pipeline:
    """A deployment that is tried before it gets traffic."""
    deploy = Deployment(
        name="deploy",
        model_data=join(parameter("data"), "/model"),
        image=pipelines.IMAGE,
        instance_type="ml.c5.xlarge",
        update=EndpointUpdate.model_validate({"baking_s": 0, "trial": [{"request": 1}]}),
    )
    return pipelines.pipeline("tried", deploy)


def serve(site: Site, model: str, run: str) -> None:
    """Make an endpoint that an earlier run of the same state machine would have made."""
    client = site.aws.client("sagemaker")
    tags = {"machine": site.deployment.state_machine_arn, "run": run, "pipeline": "tried"}
    marks = [{"Key": f"orchestration:{key}", "Value": value} for key, value in tags.items()]
    shape = {"InstanceType": "ml.c5.xlarge", "InitialInstanceCount": 1}
    client.create_endpoint_config(
        EndpointConfigName=SERVING,
        ProductionVariants=[{"VariantName": "main", "ModelName": model, **shape}],
        Tags=marks,
    )
    client.create_endpoint(EndpointName=SERVING, EndpointConfigName=SERVING, Tags=marks)


def test_an_execution_that_is_stopped_during_a_trial_leaves_only_what_serves(
    tmp_path: Path,
) -> None:
    code = tmp_path / "model" / "code"
    code.mkdir(parents=True)
    answered = tmp_path / "answered"
    answered.mkdir()
    (code / "inference.py").write_text(SLOW_MODEL.replace("ANSWERED", str(answered)))

    def stop(place: Site, execution: str) -> None:
        """Stop an execution while its trial is waited for, and let the trial answer."""
        place.stop(execution, ended=False)
        (answered / run_token(execution)).touch()
        place.end(execution)

    with deployed(tried(), tmp_path) as site:
        site.deaf()
        stopped, running = site.start(), site.start()
        wait(lambda: len(site.endpoints()) == 2)
        [model] = site.aws.state()["sagemaker"]["Models"]
        serve(site, model, run_token(stopped))
        stop(site, stopped)
        assert site.sweep() == "SUCCEEDED"
        assert site.endpoints() == {SERVING, f"tried-deploy-{run_token(running)}"}
        stop(site, running)
        for _ in range(2):
            assert site.sweep() == "SUCCEEDED"
        assert site.endpoints() == {SERVING}
        assert set(site.aws.state()["sagemaker"]["EndpointConfigs"]) == {SERVING, model}
        deletions = site.calls("DeleteEndpoint", "DeleteEndpointConfig", "DeleteModel")
        assert deletions == ["DeleteEndpoint", "DeleteEndpointConfig"] * 2


def keep(site: Site, arn: str, hours: str) -> None:
    tags = [{"Key": "orchestration:keep-for-h", "Value": hours}]
    site.aws.client("fsx").tag_resource(ResourceARN=arn, Tags=tags)
