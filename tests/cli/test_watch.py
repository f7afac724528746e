"""``watch``: a run as it goes on and at its end, in lines, as JSON, on a terminal, as a page."""

from __future__ import annotations

import datetime
import http.client
import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer

from orchestration.catalog import prices
from orchestration.cli.commands.deployed.board import board
from orchestration.cli.commands.deployed.changes import Changes
from orchestration.cli.commands.deployed.serving import served
from orchestration.cli.commands.deployed.watching import looks
from orchestration.errors import StartError
from orchestration.local import EmbeddedAws
from orchestration.runs import Execution, Jobs, Logs, Snapshot, Watch, tokens_of
from orchestration.runs.logs import Event, Stream
from orchestration.runs.watching import StageView
from tests.cli.conftest import Command
from tests.cli.talkative import NAME, Talkative
from tests.local.conftest import wait
from tests.patience import PATIENCE_S
from tests.planning.telling.test_report_in_browser import browser

pytestmark = pytest.mark.slow  # starts the embedded AWS

LAST = "epoch=5 <b>bold</b>"
"""The last line of each host."""


def look(runs: Talkative, run: str, logs: Logs | None = None) -> Callable[[], Snapshot]:
    aws = runs.aws
    pipeline = runs.pipeline
    jobs = Jobs(pipeline, aws.client("sagemaker"))
    logs = logs or Logs(aws.client("logs"))
    return Watch(Execution(pipeline, run, aws), jobs, logs, region=aws.region, lines=3).look


def states(snapshot: Snapshot) -> dict[str, str]:
    return {stage.name: stage.state for stage in snapshot.stages}


def has_told_all(stage: StageView) -> bool:
    """Both hosts tell the metric, and lines come one by one."""
    return bool(
        stage.jobs and stage.jobs[0].log[-1:] == (LAST,) and stage.jobs[0].metrics == {"epoch": 5.0}
    )


@pytest.fixture(scope="module")
def seen(runs: Talkative, tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Snapshot]:
    """A run while its job waits, and once that has failed."""
    hold = tmp_path_factory.mktemp("hold") / "go"
    runs.start("sunday", hold=str(hold))
    looked = look(runs, "sunday")
    try:
        during = wait(looked, lambda shot: any(map(has_told_all, shot.stages)))
    finally:
        hold.write_text("fail")
    return during, wait(looked, lambda shot: shot.state != "running")


def test_a_run_shows_its_stages_jobs_metrics_and_dollars_while_it_runs(
    seen: tuple[Snapshot, Snapshot],
) -> None:
    during, _ = seen
    assert (during.state, during.run) == ("running", f"{NAME}:{during.run.partition(':')[2]}")
    assert states(during) == {"staging": "succeeded", "train": "running", "publish": "waiting"}
    train = during.stages[1]
    [job] = train.jobs
    assert train.steps == ("train.job",)
    assert (job.status, job.phase) == ("InProgress", "Training")
    assert job.metrics == {"epoch": 5.0}
    assert job.log == tuple(f"epoch={number} <b>bold</b>" for number in (3, 4, 5))
    assert job.usd is not None
    assert 0 < during.usd == job.usd <= 2 * prices()["ml.m5.xlarge"].usd_per_hour * during.elapsed_s
    assert during.unpriced == ()


def test_a_failed_run_says_which_stage_and_why(seen: tuple[Snapshot, Snapshot]) -> None:
    during, after = seen
    assert (after.state, after.error) == ("failed", "JobFailed")
    assert states(after) == {"staging": "succeeded", "train": "failed", "publish": "not reached"}
    [job] = after.stages[1].jobs
    assert (job.status, job.reason != "") == ("Failed", True)
    changes = Changes()
    lines = [line.partition("  ")[2] for shot in seen for line in changes.of(shot)]
    assert lines[0] == "staging: succeeded"
    assert lines.count("train: running") == lines.count("train: failed") == 1
    assert f"train, metrics of {job.name}: epoch 5" in lines
    assert lines[-1].startswith(f"run {after.run} of {NAME}: failed after 0:")
    assert list(Changes().of(during))[-1].endswith("epoch 5")


def test_the_end_of_a_run_is_the_exit_status(
    runs: Talkative, seen: tuple[Snapshot, Snapshot], account: EmbeddedAws, orchestrate: Command
) -> None:
    command = ("watch", runs.file, "--every-s", "0.1", "--run-id")
    failed = orchestrate(*command, "sunday", "--json")
    assert failed.status == 1
    assert json.loads(failed.out)["stages"][1]["state"] == "failed"
    assert f"error: run {seen[1].run} failed: JobFailed: " in failed.err
    told = "what to do: orchestrate explain JobFailed\n"
    logs = orchestrate("logs", runs.file, "train", "--run-id", "sunday")
    assert (told in orchestrate("runs", NAME).err, logs.err) == (True, told)
    well = orchestrate(*command, f"{NAME}:friday", "--page")
    assert (well.status, "the page is http://127.0.0.1:" in well.err) == (0, True)
    assert "  publish: succeeded\n" in well.out
    assert orchestrate(*command, runs.execution).status == 0
    none = orchestrate(*command, "monday")
    assert (none.status, "there is no run monday of talkative" in none.err) == (1, True)


def test_a_look_that_fails_is_repeated_until_many_in_a_row_do(
    seen: tuple[Snapshot, Snapshot], capsys: pytest.CaptureFixture[str]
) -> None:
    during, after = seen
    assert after.ended is not None
    soon = replace(after, at=after.ended)
    later = replace(after, at=after.ended + datetime.timedelta(minutes=5))
    lost = StartError("the log of a job can't be read: throttled")

    def states_of(*answers: Snapshot | StartError) -> list[str]:
        told = iter(answers)

        def ask() -> Snapshot:
            answer = next(told)
            if isinstance(answer, StartError):
                raise answer
            return answer

        return [snapshot.state for snapshot in looks(ask, every_s=0.0)]

    assert states_of(during, lost, lost, during, *[lost] * 4, later) == [*["running"] * 2, "failed"]
    assert capsys.readouterr().err.count("throttled; looking again") == 6
    # After the end it is looked at once more, for the last lines; that may fail.
    assert states_of(during, soon, later) == states_of(during, soon, lost) == ["running", "failed"]
    with pytest.raises(typer.Exit) as given_up:
        states_of(during, *[lost] * 5)
    assert given_up.value.exit_code == 3
    assert "what becomes of it is not known" in capsys.readouterr().err
    with pytest.raises(StartError):
        states_of(lost)


def test_lines_that_come_after_the_end_of_a_job_are_shown(runs: Talkative) -> None:
    held: dict[str, list[Any]] = {}
    arrived = False

    def remember(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["stream"] = params["logStreamName"]

    def deliver(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        waiting = held.setdefault(context["stream"], [])
        waiting += parsed["events"]
        parsed["events"] = waiting if arrived else []
        held[context["stream"]] = [] if arrived else waiting

    client = runs.aws.client("logs")
    client.meta.events.register("provide-client-params.cloudwatch-logs.GetLogEvents", remember)
    client.meta.events.register("after-call.cloudwatch-logs.GetLogEvents", deliver)
    looked = look(runs, "friday", Logs(client))
    assert looked().stages[1].jobs[0].log == ()
    arrived = True
    assert looked().stages[1].jobs[0].log[-1] == LAST


class _Hosts(Logs):
    """The second host tells its first epoch once the first host has told all."""

    looks = 0

    def read(self, stream: Stream, *, most: int | None = None) -> list[Event]:
        found = super().read(stream, most=most)
        if stream.host == "algo-2":
            self.looks += 1
            return (
                [] if self.looks == 1 else [Event(datetime.datetime.now(datetime.UTC), "epoch=1")]
            )
        return found


def test_the_metrics_of_the_first_host_count_also_where_another_tells_later(
    runs: Talkative,
) -> None:
    sagemaker = runs.aws.client("sagemaker")

    def unsaid(parsed: dict[str, Any], **_: Any) -> None:
        parsed.pop("FinalMetricDataList", None)

    events = sagemaker.meta.events
    events.register("after-call.sagemaker.DescribeTrainingJob", unsaid)
    try:
        looked = look(runs, "friday", _Hosts(runs.aws.client("logs")))
        told = [looked().stages[1].jobs[0].metrics for _ in range(2)]
    finally:
        events.unregister("after-call.sagemaker.DescribeTrainingJob", unsaid)
    assert told == [{"epoch": 5.0}] * 2


def test_the_jobs_of_a_run_are_found_behind_those_of_later_ones(
    runs: Talkative, seen: tuple[Snapshot, Snapshot]
) -> None:
    sagemaker = runs.aws.client("sagemaker")
    friday = tokens_of(NAME, "friday", runs.aws)
    [job] = Jobs(runs.pipeline, sagemaker).of(friday)
    # Saturday's and Sunday's jobs are each a page before it.
    behind = Jobs(runs.pipeline, sagemaker, page=1)
    assert [each.name for each in behind.of(friday)] == [job.name]
    assert [each.name for each in behind.every()] == [seen[1].stages[1].jobs[0].name]
    later = job.description["CreationTime"] + datetime.timedelta(days=1)
    assert behind.of(friday, since=later) == []


def test_a_terminal_shows_text_of_users_as_it_is(seen: tuple[Snapshot, Snapshot]) -> None:
    from rich.console import Console

    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(board(seen[0]))
    text = console.export_text()
    assert f"{NAME}, run {seen[0].run}: running" in text
    assert "epoch=5 <b>bold</b>" in text
    assert "Training" in text
    assert "for jobs" in text


def answer(url: str, host: str | None = None, path: str | None = None) -> tuple[int, str, str]:
    """Ask a page as a browser does."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.netloc, timeout=PATIENCE_S)
    connection.request("GET", path or at.path, headers={"Host": host or at.netloc})
    response = connection.getresponse()
    text, policy = response.read().decode(), response.headers["Content-Security-Policy"]
    connection.close()
    return response.status, text, policy


def test_the_page_is_for_this_machine_and_whoever_knows_its_path(
    seen: tuple[Snapshot, Snapshot],
) -> None:
    with served(0, every_s=0.1) as page:
        page.change(seen[0])
        status, text, policy = answer(page.url)
        assert (status, urlsplit(page.url).hostname) == (200, "127.0.0.1")
        assert "&lt;b&gt;bold&lt;/b&gt;" in text
        assert "<b>bold" not in text
        assert "http" not in text
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert answer(page.url, path="/")[0] == 404
        assert answer(page.url, host="elsewhere.example")[0] == 404
    with pytest.raises(ConnectionRefusedError):
        answer(page.url)


def test_nobody_waits_for_a_page_that_was_not_opened(
    seen: tuple[Snapshot, Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    def waited(_: float) -> bool:
        raise AssertionError("it waits for a page that nobody looks at")

    with served(0, every_s=3600) as page:
        page.change(seen[1])
        monkeypatch.setattr(page._seen, "wait", waited)
        page.wait_until_seen()


def test_a_browser_shows_the_end_of_the_run(
    seen: tuple[Snapshot, Snapshot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(0, every_s=0.1) as page:
        page.change(seen[0])
        first = page.answer

        def then_the_end(path: str, host: str) -> object:
            answered = first(path, host)
            if answered[0] == 200:
                page.change(seen[1])
            return answered

        monkeypatch.setattr(page, "answer", then_the_end)
        done = subprocess.run(
            [
                browser(),
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
                *("--disable-background-networking", "--disable-sync", "--no-first-run"),
                *("--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=20000"),
                *(f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.url),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    assert f"<title>{NAME}: failed</title>" in done.stdout
    assert "not reached" in done.stdout
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert [line for line in console if "favicon" not in line] == []
