"""``start``, ``runs``, ``watch``, ``stop`` and ``rerun`` against Airflow's own API server."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends.airflow.spec import PERFORMED
from orchestration.direct.stages import stage_state
from orchestration.local import EmbeddedAws
from orchestration.local.airflow.home import dag_file, variables_in
from orchestration.runs.airflow import Api, DagRuns
from orchestration.runs.airflow.task_instances import steps, to_come
from tests.cli.airflow_components import TIME_SCALE, account_of, component, settings
from tests.cli.conftest import ROOT, STAGING, Command, Said
from tests.local.conftest import wait
from tests.patience import PATIENCE_S
from tests.shown import pages

# Its start takes ten seconds of a processor.
with_airflow = pytest.mark.thorough

COMMANDS = ROOT / "docs" / "commands.md"
SERVER = Path(__file__).with_name("airflow_server.py")
WORKER = Path(__file__).with_name("airflow_worker.py")
SCHEDULER = Path(__file__).with_name("airflow_scheduler.py")
PASSWORD = "of-the-test"
API_TIMEOUT = "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT"
WITH_DEFAULTS = (
    "  data: {",
    "  role: {default: arn:aws:iam::123456789012:role/r}\n  data: {default: 's3://b/d', ",
)
SCHEDULE = "schedule: {cron: 0 6 * * *, parameters: {bucket: b, data: 's3://b/d'}}"
ROLE = "arn:aws:iam::123456789012:role/r"
STOPPING = f"""\
name: stopping
overlap: stop_older
region: us-east-1
workspace: s3://stopping/runs
role: {ROLE}
stages:
  train:
    kind: training_job
    image: image
    entrypoint: [sh, -c, "until [ -e DOOR ]; do sleep 0.1; done"]
    cluster: {{instance_type: ml.c5.xlarge}}
"""
SENDING = "{kind: aws_call, service: sqs, operation: SendMessage, request: {QueueUrl: q"
MARKET = f"""\
name: market
workspace: s3://together/runs
parameters: {{market: {{}}}}
stages:
  fetch: {SENDING}, MessageBody: {{parameter: market}}}}}}
  tell: {SENDING}, MessageBody: told}}, after: [fetch]}}
"""
TOGETHER = """\
name: together
region: us-east-1
workspace: s3://together/runs
stages:
  each:
    kind: pipeline
    file: market.yaml
    for_each: {items: [de, it]}
    parameters: {market: {each: item}}
"""
GIVEN = ("-p", "bucket=b", "-p", "data=s3://b/d", "-p", "role=arn:aws:iam::123456789012:role/r")


@dataclass(frozen=True)
class Airflow:
    """An API server with the DAG of a pipeline, and with that of the documentation's pages."""

    url: str
    token: str
    file: Path
    variables: Mapping[str, str]

    @property
    def api(self) -> Api:
        return Api(self.url, self.token)


@pytest.fixture(scope="module")
def airflow_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    home = tmp_path_factory.mktemp("airflow")
    for folder in ("dags", "tmp"):
        (home / folder).mkdir()
    file = home / "copying.yaml"
    file.write_text(STAGING)
    digits = home / "digits.yaml"
    digits.write_text(STAGING.replace("name: copying", "name: digits").replace(*WITH_DEFAULTS))
    skipping = home / "skipping.yaml"
    skipping.write_text(STAGING.replace("name: copying", "name: skipping\noverlap: skip"))
    queueing = home / "queueing.yaml"
    queueing.write_text(STAGING.replace("name: copying", "name: queueing\noverlap: queue"))
    nightly = home / "nightly.yaml"
    nightly.write_text(STAGING.replace("name: copying", f"name: nightly\n{SCHEDULE}"))
    stopping = home / "stopping.yaml"
    stopping.write_text(STOPPING.replace("DOOR", str(home / "door")))
    together = home / "together.yaml"
    together.write_text(TOGETHER)
    together.with_name("market.yaml").write_text(MARKET)
    every = (file, digits, skipping, queueing, nightly, stopping, together)
    files = [dag_file(Pipeline.load(each), home) for each in every]
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps({"admin": PASSWORD}))
    variables = {
        **variables_in(home, os.environ),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__API_AUTH__JWT_SECRET": "made up, and longer than sixty-four bytes " * 2,
    }
    log = home / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, SERVER, *files],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        port = next((line.strip() for line in lines if line.strip().isdigit()), None)
        assert port, log.read_text()
        url = f"http://127.0.0.1:{port}"
        yield Airflow(url, _token(url), file, variables)
        # The end of its input is its end, which leaving the block waits for.


def _token(url: str) -> str:
    request = urllib.request.Request(
        f"{url}/auth/token",
        json.dumps({"username": "admin", "password": PASSWORD}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return str(json.load(response)["access_token"])


@pytest.fixture
def there(airflow_api: Airflow, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("AIRFLOW_CLI_TOKEN", airflow_api.token)
    return ("--on", "airflow", "--url", airflow_api.url)


@contextlib.contextmanager
def unpaused(airflow: Airflow, dag_id: str) -> Iterator[None]:
    """Let Airflow run a DAG, and leave none of its runs to the scheduler of another test."""
    airflow.api.patch("dags", dag_id, body={"is_paused": False})
    try:
        yield
    finally:
        airflow.api.patch("dags", dag_id, body={"is_paused": True})
        for run in airflow.api.get("dags", dag_id, "dagRuns")["dag_runs"]:
            if run["state"] in ("queued", "running"):
                place = ("dags", dag_id, "dagRuns", run["dag_run_id"])
                airflow.api.patch(*place, body={"state": "failed"})


@with_airflow
def test_a_run_is_started_once_watched_stopped_and_started_again(
    airflow_api: Airflow, there: tuple[str, ...], orchestrate: Command
) -> None:
    start = ("start", airflow_api.file, *GIVEN, "--run-id", "friday", *there)
    started = orchestrate(*start)
    assert (started.status, started.out) == (0, "copying/friday\n")
    assert "warning: DAG copying is paused: its runs wait" in started.err
    assert orchestrate(*start, "--json").document["dag_run"] == "copying/friday"
    other = orchestrate(*start, "-p", "limit=4")
    assert (other.status, "has been started before" in other.err) == (1, True)
    [run] = orchestrate("runs", "copying", "--json", *there).document["runs"]
    assert (run["dag_run"], run["status"], run["ended"]) == ("copying/friday", "queued", None)
    early = orchestrate("rerun", "copying/friday", *there)
    assert (early.status, "has not failed, it is queued" in early.err) == (1, True)

    stopped = orchestrate("stop", "copying/friday", *there)
    assert (stopped.status, "is marked as failed" in stopped.err) == (0, True)
    assert not orchestrate("stop", "copying/friday", "--json", *there).document["was_running"]
    table = orchestrate("runs", "copying", *there).out.splitlines()
    assert table[1].split()[:2] == ["copying/friday", "failed"]
    watched = orchestrate("watch", airflow_api.file, "--run-id", "friday", *there)
    assert (watched.status, "error: run copying/friday failed" in watched.err) == (1, True)

    cost = orchestrate("cost", airflow_api.file, "--run-id", "friday", *there)
    assert (cost.status, cost.out) == (0, "billed: $0.00, without transfers, requests and logs\n")

    again = orchestrate("rerun", "copying/friday", *there)
    assert (again.status, again.out) == (0, "copying/friday\n")
    assert (
        orchestrate("runs", "copying", "--json", *there).document["runs"][0]["status"] == "queued"
    )


@with_airflow
def test_tasks_are_the_steps_of_their_stages(
    airflow_api: Airflow, there: tuple[str, ...], orchestrate: Command
) -> None:
    assert orchestrate("start", airflow_api.file, *GIVEN, "--run-id", "states", *there).status == 0
    api, run = airflow_api.api, ("dags", "copying", "dagRuns", "states")
    watched = DagRuns("copying", api).watched(Pipeline.load(airflow_api.file), "copying/states")
    began = watched.look()
    assert (began.state, stage_state("staging", began.steps, began.state)) == ("running", "waiting")
    tasks = [task["task_id"] for task in api.every("task_instances", *run, "taskInstances")]
    own = [each for each in tasks if each.partition(".")[0] == "staging"]
    for task in own:
        api.patch(*run, "taskInstances", task, body={"new_state": "success"})
        between = watched.look()
        state = stage_state("staging", between.steps, between.state, to_come=between.to_come)
        assert state == ("succeeded" if task == own[-1] else "running")
    done = watched.look()
    assert stage_state("staging", done.steps, done.state) == "succeeded"
    api.patch(*run, body={"state": "success"})
    end = watched.look()
    assert (end.state, end.error) == ("succeeded", "")
    command = ("watch", airflow_api.file, "--run-id", "states", "--json", *there)
    [stage] = orchestrate(*command).document["stages"]
    assert (stage["name"], stage["state"]) == ("staging", "succeeded")


def _exported(line: str, url: str) -> str:
    """Return the token that a reader's shell exports by a line, with curl and jq."""
    done = subprocess.run(
        ["sh", "-c", f'{line} && printf %s "$AIRFLOW_CLI_TOKEN"'],
        env={**os.environ, "AIRFLOW_API_URL": url},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return done.stdout


@with_airflow
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="a line needs both")
def test_the_commands_that_are_shown_run(
    airflow_api: Airflow, orchestrate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(airflow_api.file.parent)
    credentials = {"username": "admin", "password": PASSWORD}
    Path("credentials.json").write_text(json.dumps(credentials))
    shown = [step.line for step in pages.steps(COMMANDS) if isinstance(step, pages.ShownCommand)]
    [asks] = [line for line in shown if line.startswith("export AIRFLOW_CLI_TOKEN")]
    monkeypatch.setenv("AIRFLOW_CLI_TOKEN", _exported(asks, airflow_api.url))
    monkeypatch.setenv("AIRFLOW_API_URL", airflow_api.url)
    lines = [shlex.split(line)[1:] for line in shown if "--on airflow" in line]
    assert [line[0] for line in lines] == ["start", "watch", "logs", "stop", "rerun"]
    for line in lines:
        if line[0] == "logs":
            continue  # no worker runs here; a test below prints what one has left
        if line[0] == "watch":
            # Nothing schedules here, so it is a person who ends the run.
            run = ("dags", "digits", "dagRuns", "friday")
            airflow_api.api.patch(*run, body={"state": "failed"})
        said = orchestrate(*line)
        assert said.status == (1 if line[0] == "watch" else 0), said.err


@dataclass(frozen=True)
class Instance:
    task_id: str
    state: str
    start: str | None = None
    end: str | None = None
    performed: Mapping[str, str] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ({"when": "success", "job": "queued"}, "waiting"),
        ({"when": "success", "job": "skipped", "check": "skipped"}, "skipped"),
        ({"job": "success", "check": "queued"}, "running"),
        ({"job": "success", "check": ""}, "running"),
        ({"job": "success", "check": "success"}, "succeeded"),
        ({"job": "failed", "check": "upstream_failed"}, "failed"),
        # What is released once the others are done does not keep its stage running.
        ({"job": "success", "check": "success", "delete": ""}, "succeeded"),
    ],
)
def test_a_stage_goes_on_between_two_of_its_tasks(states: dict[str, str], state: str) -> None:
    tasks = [Instance(f"train.{task}", state) for task, state in states.items()]
    coming = frozenset(to_come(tasks, {"train.delete"}))
    assert stage_state("train", steps(tasks), "running", to_come=coming) == state


@with_airflow
def test_stages_that_go_through_a_list_together_are_what_their_task_has_left(
    airflow_api: Airflow,
) -> None:
    pipeline = Pipeline.load(airflow_api.file.with_name("together.yaml"))
    api, run = airflow_api.api, ("dags", "together", "dagRuns", "states")
    runs = DagRuns("together", api)
    runs.start(pipeline, {}, "states")
    watched = runs.watched(pipeline, "states")
    tasks = [each["task_id"] for each in api.every("task_instances", *run, "taskInstances")]
    [task] = [each for each in tasks if each.partition(".")[0] == "each"]
    left = {"each_fetch.call": "success", "each_tell.call": "failed"}
    place = (*run, "taskInstances", task)
    key = f"{PERFORMED}1"
    api.post(*place, "xcomEntries", body={"key": key, "value": left, "map_index": -1})
    api.patch(*place, body={"new_state": "failed"})
    api.patch(*run, body={"state": "failed"})
    end = watched.look()
    states = {name: stage_state(name, end.steps, end.state) for name in ("each_fetch", "each_tell")}
    assert states == {"each_fetch": "succeeded", "each_tell": "failed"}
    # What it has left stays until its next attempt begins.
    runs.rerun("states")
    assert api.get(*place, "xcomEntries", key)["value"] == left
    again = watched.look()
    states = {name: stage_state(name, again.steps, again.state) for name in states}
    assert states == {"each_fetch": "waiting", "each_tell": "waiting"}


@with_airflow
def test_a_task_that_fails_without_a_job_shows_its_own_log(
    airflow_api: Airflow, there: tuple[str, ...], orchestrate: Command
) -> None:
    logs = ("logs", airflow_api.file, "staging", "--run-id", "broken", *there)
    assert orchestrate("start", airflow_api.file, *GIVEN, "--run-id", "broken", *there).status == 0
    early = orchestrate(*logs)
    assert (early.status, early.out) == (1, "")
    assert "stage staging of run broken of copying has started no task (yet)" in early.err
    run = ("dags", "copying", "dagRuns", "broken")
    found = airflow_api.api.every("task_instances", *run, "taskInstances")
    task = next(each["task_id"] for each in found if each["task_id"].startswith("staging"))
    variables = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", API_TIMEOUT: str(PATIENCE_S)}
    subprocess.run(
        [sys.executable, WORKER, airflow_api.url, "broken", task],
        env={**airflow_api.variables, **variables}, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    said = orchestrate(*logs)
    lines = said.out.splitlines()
    assert said.status == 0
    assert all(line.startswith("staging up_for_retry ") for line in lines)
    assert any(line.endswith(" ListObjectsV2 staging.list") for line in lines)
    why = "EndpointConnectionError: ListObjectsV2 staging.list of s3://b/d/: Could not connect"
    assert why in lines[-1]
    [shown] = orchestrate(*logs, "--tail", "1", "--json").document["tasks"]
    assert (shown["name"], shown["try"], len(shown["events"])) == (task, 1, 1)
    airflow_api.api.patch(*run, "taskInstances", task, body={"new_state": "failed"})
    airflow_api.api.patch(*run, body={"state": "failed"})
    watch = ("watch", airflow_api.file, "--run-id", "broken", *there)
    failed = orchestrate(*watch)
    assert (failed.status, f"run copying/broken failed: {why}" in failed.err) == (1, True)
    [stage] = orchestrate(*watch, "--lines", "1", "--json").document["stages"]
    assert why in stage["logs"][task][0]


@with_airflow
def test_a_run_that_was_skipped_is_shown_as_skipped(
    airflow_api: Airflow, there: tuple[str, ...], orchestrate: Command
) -> None:
    file = airflow_api.file.with_name("skipping.yaml")
    for name in ("first", "second"):
        assert orchestrate("start", file, "--run-id", name, *GIVEN, *there).status == 0
        subprocess.run(
            [sys.executable, WORKER, airflow_api.url, name, "inputs"],
            env={**airflow_api.variables, API_TIMEOUT: str(PATIENCE_S)}, check=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
    # As Airflow's scheduler does once the other tasks are skipped; the first run goes on.
    run = ("dags", "skipping", "dagRuns", "second")
    airflow_api.api.patch(*run, body={"state": "success"})
    runs = orchestrate("runs", "skipping", "--json", *there).document["runs"]
    assert {run["dag_run"]: (run["status"], run["cause"]) for run in runs} == {
        "skipping/first": ("queued", ""),
        "skipping/second": ("skipped", "skipping/first was under way"),
    }


@with_airflow
def test_airflows_scheduler_starts_a_run_that_queues_when_the_older_one_has_ended(
    airflow_api: Airflow, there: tuple[str, ...], orchestrate: Command
) -> None:
    file = airflow_api.file.with_name("queueing.yaml")
    names = ("first", "second", "third")
    for name in names:
        assert orchestrate("start", file, "--run-id", name, *GIVEN, *there).status == 0
    with (
        unpaused(airflow_api, "queueing"),
        subprocess.Popen(
            [sys.executable, SCHEDULER],
            env=dict(airflow_api.variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as scheduler,
    ):
        assert scheduler.stdin is not None
        assert scheduler.stdout is not None

        def active() -> list[str]:
            """Let the scheduler look; return the states of the runs, the oldest first."""
            print("look", file=scheduler.stdin, flush=True)
            assert "looked\n" in iter(scheduler.stdout.readline, "")  # type: ignore[union-attr]  # asserted above
            runs = orchestrate("runs", "queueing", "--json", *there).document["runs"]
            found = {run["dag_run"]: run["status"] for run in runs}
            return [found[f"queueing/{name}"] for name in names]

        assert active() == ["running", "queued", "queued"]
        for ended, expected in (
            ("first", ["failed", "running", "queued"]),
            ("second", ["failed", "failed", "running"]),
        ):
            assert orchestrate("stop", f"queueing/{ended}", *there).status == 0
            assert active() == expected
        # The end of its input is its end.


@with_airflow
def test_airflow_ends_the_older_run_and_its_job_before_the_newer_one_pays(
    airflow_api: Airflow,
    there: tuple[str, ...],
    orchestrate: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scheduler, the workers and the triggerer are Airflow's own."""
    file = airflow_api.file.with_name("stopping.yaml")

    def jobs() -> list[Any]:
        """Return the jobs, the oldest first."""
        every = aws.state()["sagemaker"]["TrainingJobs"].values()
        return sorted(every, key=lambda job: job["CreationTime"])

    def await_jobs(*statuses: str) -> None:
        wait(lambda: [job["TrainingJobStatus"] for job in jobs()], lambda now: now == [*statuses])

    def start(name: str) -> None:
        assert orchestrate("start", file, "--run-id", name, *there).status == 0

    def watch(name: str) -> Said:
        """Follow a run to its end."""
        return orchestrate("watch", file, "--run-id", name, *there)

    with unpaused(airflow_api, "stopping"), EmbeddedAws(time_scale=TIME_SCALE) as aws:
        aws.provide(roles=[ROLE])
        aws.client("s3").create_bucket(Bucket="stopping")
        environment = settings(airflow_api.variables, airflow_api.url, aws)
        for name, value in account_of(aws).items():
            monkeypatch.setenv(name, value)
        with (
            component("scheduler", environment, tmp_path / "scheduler.log"),
            component("triggerer", environment, tmp_path / "triggerer.log"),
        ):
            start("first")
            await_jobs("InProgress")
            start("second")
            await_jobs("Stopped", "InProgress")
            airflow_api.file.with_name("door").touch()
            second, first = watch("second"), watch("first")
            listed = orchestrate("runs", "stopping", "--json", *there).document["runs"]
        older, newer = jobs()
        calls = aws.calls(service="sagemaker")
    assert (second.status, newer["TrainingJobStatus"]) == (0, "Completed"), second.err
    assert first.status == 1
    assert "Superseded: A newer run took its place: second" in first.err
    assert {run["dag_run"]: (run["error"], run["cause"]) for run in listed} == {
        "stopping/second": ("", ""),
        "stopping/first": ("Superseded", "A newer run took its place: second"),
    }
    assert older["TrainingEndTime"] <= newer["CreationTime"]
    assert "StopTrainingJob" in [call.operation for call in calls]


@with_airflow
def test_pages_are_read_to_their_end(airflow_api: Airflow) -> None:
    runs = DagRuns("copying", airflow_api.api)
    pipeline = Pipeline.load(airflow_api.file)
    names = {
        runs.start(pipeline, {"bucket": "b", "data": "d", "role": "r"}, f"p{n}").id
        for n in range(3)
    }
    api = Api(airflow_api.url, airflow_api.token)
    found = list(api.every("dag_runs", "dags", "copying", "dagRuns", page=2))
    assert names <= {f"copying/{run['dag_run_id']}" for run in found}
    assert len(found) == len({run["dag_run_id"] for run in found})
    assert len(runs.listed(2)) == 2


@with_airflow
def test_what_airflow_refuses_is_an_error_without_the_token(
    airflow_api: Airflow,
    there: tuple[str, ...],
    orchestrate: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for arguments, said in (
        (("runs", "nobody"), "answers 404: "),
        (("stop", "copying/nobody"), "answers 404: "),
        (("watch", airflow_api.file, "--run-id", "nobody"), "answers 404: "),
    ):
        refused = orchestrate(*arguments, *there)
        assert (refused.status, said in refused.err) == (1, True), refused.err
    monkeypatch.setenv("AIRFLOW_CLI_TOKEN", "wrong-token")
    denied = orchestrate("runs", "copying", *there)
    assert (denied.status, "; take a new token from its /auth/token" in denied.err) == (1, True)
    assert "wrong-token" not in denied.err + denied.out


def test_what_is_missing_or_not_there_is_named(
    orchestrate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ("runs", "copying", "--on", "airflow")
    monkeypatch.delenv("AIRFLOW_CLI_TOKEN", raising=False)
    missing = orchestrate(*runs, "--url", "http://127.0.0.1:9")
    assert (missing.status, "AIRFLOW_CLI_TOKEN is not set" in missing.err) == (1, True)
    assert orchestrate(*runs).status == 2
    monkeypatch.setenv("AIRFLOW_CLI_TOKEN", "of-nobody")
    for url, said in (
        ("http://127.0.0.1:9", "can't be reached"),
        ("airflow.example.com", "expected the URL of Airflow's API server, https://…, got"),
    ):
        refused = orchestrate(*runs, "--url", url)
        assert (refused.status, said in refused.err) == (1, True), refused.err
        assert "of-nobody" not in refused.err


@with_airflow
def test_the_doctor_looks_a_connection_up_in_the_airflow_at_a_url(
    airflow_api: Airflow,
    there: tuple[str, ...],
    orchestrate: Command,
    account: EmbeddedAws,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def told(*options: str) -> list[tuple[str, str]]:
        said = orchestrate(
            *("doctor", airflow_api.file, "--account", "-p", "bucket=b", "-p", "data=s3://b/d"),
            *("--json", *there[2:], *options),
        )
        found = [each for each in said.document["findings"] if each["check"] == "connections"]
        return [(each["severity"], each["what"]) for each in found]

    def kept(name: str, kind: str, region: str) -> None:
        extra = json.dumps({"region_name": region, "aws_secret_access_key": "hidden"})
        body = {"connection_id": name, "conn_type": kind, "extra": extra}
        airflow_api.api.post("connections", body=body)

    [(severity, what)] = told()
    assert severity == "may fail"
    assert "Airflow has no connection aws_default (in its database; a secrets backend" in what
    kept("aws_default", "aws", account.region)
    assert told() == []
    kept("ireland", "aws", "eu-west-1")
    elsewhere = f"connection ireland is for eu-west-1, and runs are in {account.region}"
    assert told("--connection", "ireland") == [("fails", elsewhere)]
    kept("web", "http", account.region)
    assert told("--connection", "web") == [("may fail", "connection web is of the type 'http'")]
    monkeypatch.setenv("AIRFLOW_CLI_TOKEN", "wrong-token")
    [(severity, what)] = told()
    assert (severity, "could not check connection aws_default: " in what) == ("not checked", True)


@with_airflow
def test_airflow_makes_the_runs_of_times_that_are_over(
    airflow_api: Airflow, there: tuple[str, ...], orchestrate: Command
) -> None:
    file = airflow_api.file.with_name("nightly.yaml")
    command = ("backfill", file, "--from", "2026-01-01", "--to", "2026-01-04", *there)
    days = [f"2026-01-0{day}T06:00:00Z" for day in (1, 2, 3)]
    would = [f"would start nightly/{day}" for day in days]
    shown = orchestrate(*command, "--dry-run")
    assert (shown.status, shown.out.splitlines()) == (0, would)
    assert f"Airflow at {airflow_api.url}" in shown.err
    assert orchestrate(*command).status == 2  # Nobody is there to say yes.
    begun = orchestrate(*command[:4], "--to", "2026-01-02", *there, "-p", "limit=4", "--yes")
    assert (begun.status, begun.out.splitlines()[0]) == (0, would[0]), begun.err
    assert "warning: DAG nightly is paused: its runs wait" in begun.err
    [run] = airflow_api.api.get("dags", "nightly", "dagRuns")["dag_runs"]
    assert (run["run_type"], run["logical_date"], run["conf"]) == (
        "backfill",
        days[0],
        {"limit": 4},
    )
    told = orchestrate(*command, "--dry-run", "--json").document
    assert ([*map(str, told["missing"])], told["backfill"]) == (
        [day.replace("Z", "+00:00") for day in days[1:]],
        None,
    )
    second = orchestrate(*command, "--yes", "--json")
    assert (second.status, "already a running backfill for dag nightly" in second.err) == (1, True)
    over = orchestrate("backfill", file, "--from", "2026-01-01", "--to", "2026-01-02", *there)
    assert (over.status, over.err.splitlines()[-1]) == (0, "nothing to start")
