"""What a run on this machine leaves: a folder with logs and objects, and a page."""

from __future__ import annotations

import datetime
import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.cli.commands.embedded.leaving import Left
from orchestration.cli.commands.running import tell_failure
from orchestration.explanations import explanations
from orchestration.expressions import Json
from orchestration.local import EmbeddedAws
from orchestration.local.account.records import RecordedCall
from orchestration.local.pages import page
from orchestration.local.pages.curves import curves
from orchestration.local.run import RunReport, StageReport
from orchestration.local.run.keeping import FAILED, REPORT, failed_folder, run_folder
from tests.cli.conftest import Command
from tests.patience import PATIENCE_S
from tests.planning.telling.test_report_in_browser import browser

_PIPELINE = """\
name: hostile
region: us-east-1
parameters: {bucket: {}}
workspace: {join: ["s3://", {parameter: bucket}, /hostile]}
stages:
  train:
    kind: training_job
    framework: {name: sklearn, version: 1.2-1}
    source: {directory: src, entry_point: train.py}
    cluster: {instance_type: ml.m5.large}
    metrics: {loss: 'loss=([0-9.a-z]+)'}
    checkpoints: {}
  evaluate:
    kind: checkpoint_evaluation
    checkpoints: {ref: train.checkpoints}
    data: s3://given/holdout
    framework: {name: sklearn, version: 1.2-1}
    source: {directory: src, entry_point: train.py}
    instance_type: ml.m5.large
    metric: error
    direction: min
"""
_SCRIPT = "<script>document.title='taken'</script>"
_START = datetime.datetime(2026, 11, 22, 6, tzinfo=datetime.UTC)


def _at(seconds: float) -> datetime.datetime:
    return _START + datetime.timedelta(seconds=seconds)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("")
    (tmp_path / "hostile.yaml").write_text(_PIPELINE)
    return Pipeline.load(tmp_path / "hostile.yaml")


@pytest.fixture
def report() -> RunReport:
    rows: list[Json] = [
        {"checkpoint": f"s3://w/c/epoch-{number}/", "metric": 1 / (number + 1)}
        for number in range(12)
    ]
    job = {
        "TrainingJobName": "hostile-train-0",
        "HyperParameters": {"text": _SCRIPT},
        "AlgorithmSpecification": {
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.a-z]+)"}]
        },
    }
    return RunReport(
        pipeline="hostile",
        on="direct",
        run_id=_SCRIPT,
        state="failed",
        error="JobFailed",
        cause=f"it said {_SCRIPT} " + "x" * 300,
        started=_START,
        ended=_at(10),
        stages=(
            StageReport(
                name="train",
                state="succeeded",
                started=_at(1),
                ended=_at(7),
                job_names=("hostile-train-0",),
                metrics={"loss": 0.25},
            ),
            StageReport(name="evaluate", state="failed", started=_at(7), ended=_at(9)),
        ),
        outputs={"evaluate": {"results": rows, "best_checkpoint": "s3://w/c/epoch-11/"}},
        calls=(
            RecordedCall(1, "sagemaker", "CreateTrainingJob", job, 200),
            *(RecordedCall(n, "sagemaker", "DescribeTrainingJob", {}, 200) for n in range(2, 9)),
        ),
    )


LOGS = {"hostile-train-0": "".join(f"loss={1 / n}\n" for n in range(1, 901)) + "loss=nan\n"}


def test_a_curve_has_every_value_that_was_printed(report: RunReport) -> None:
    [curve] = curves(report, LOGS)
    assert (curve.job, curve.metric) == ("hostile-train-0", "loss")
    assert curve.values == tuple(1 / n for n in range(1, 901))


def test_the_page_tells_the_run_and_runs_nothing_of_it(
    pipeline: Pipeline, report: RunReport
) -> None:
    text = page(report, pipeline, {**LOGS, _SCRIPT: "y" * 3_000_000})
    assert len(text.encode()) < 1_500_000
    assert "<script" not in text
    assert html.escape(f"it said {_SCRIPT}") in text
    assert html.escape(explanations()["JobFailed"].cure) in text
    assert re.search(r"src=|href=|url\(|@import", text) is None
    for told in ("succeeded, 6.0 s", "failed, 2.0 s", "Durations", "epoch-11"):
        assert told in text
    assert "<tr><td>sagemaker:DescribeTrainingJob</td><td>7</td><td>200</td></tr>" in text
    assert "Requests sent: 8" in text
    assert "letters before …" in text


def test_a_run_without_anything_has_a_page(pipeline: Pipeline, report: RunReport) -> None:
    bare = replace(report.stages[0], state="not reached", started=None, ended=None, metrics={})
    stages = (bare, replace(bare, name="evaluate"))
    text = page(replace(report, stages=stages, calls=(), outputs=None), pipeline, {})
    assert "not reached" in text
    assert "Durations" not in text


def test_the_page_fits_a_phone(pipeline: Pipeline, report: RunReport, tmp_path: Path) -> None:
    (tmp_path / "run.html").write_text(page(report, pipeline, LOGS))
    probe = """<iframe src="run.html" style="width:390px;height:900px;border:0"></iframe>
<script>window.addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  page.querySelectorAll("details").forEach(each => { each.open = true; });
  const said = document.createElement("pre");
  said.id = "said";
  said.textContent = JSON.stringify({
    title: page.title, wide: page.documentElement.scrollWidth,
    stages: [...page.querySelectorAll("g.stage rect")].map(
      box => box.getBoundingClientRect().width > 60),
    curves: [...page.querySelectorAll("polyline")].map(
      line => line.getBoundingClientRect().height > 20),
    dots: page.querySelectorAll("#metric circle.point").length,
  });
  document.body.appendChild(said);
});</script>"""
    (tmp_path / "probe.html").write_text(probe)
    shown = subprocess.run(
        [
            *(browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--window-size=1000,1000", "--virtual-time-budget=5000", "--dump-dom"),
            (tmp_path / "probe.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    ).stdout
    match = re.search(r'<pre id="said">(.*?)</pre>', shown)
    assert match is not None
    seen = json.loads(html.unescape(match[1]))
    assert seen.pop("wide") <= 390
    assert seen == {
        "title": "hostile: failed",
        "stages": [True, True],
        "curves": [True],
        "dots": 12,
    }


def test_a_run_that_is_kept_has_its_objects_and_a_page(
    orchestrate: Command, staging: Path, data: Path, tmp_path: Path
) -> None:
    written = tmp_path / "pages/run.html"
    other = staging.parent / ".orchestration/runs/copying/first/notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("of no run, so it stays")
    said = orchestrate(
        *("run", staging, "--time-scale", "0.005", "--run-id", "first"),
        *("-p", "bucket=workspace", "-p", "data=s3://dataset/set"),
        *("--upload", f"{data}=s3://dataset/set", "--keep", "--report", written),
    )
    assert said.status == 0
    kept = staging.parent / ".orchestration/runs/copying/first"
    assert f"kept: {kept} (logs, and 2 objects of S3)" in said.err
    assert other.exists()
    assert json.loads((kept / "report.json").read_text())["state"] == "succeeded"
    copies = [path for path in (kept / "s3/workspace").rglob("*") if path.is_file()]
    assert sorted(path.stat().st_size for path in copies) == [10, 20]
    assert "copying: succeeded" in written.read_text()
    # Nothing started a job, and nothing of it runs on.
    said = orchestrate("logs", staging, "staging", "--kept")
    assert (said.status, said.out) == (1, "")
    assert "stage staging of run first has started no job" in said.err
    log = kept / "logs/staging/copying-staging-0.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\n")
    said = orchestrate("logs", staging, "staging", "--kept", "--tail", 1)
    assert (said.status, said.out) == (0, "copying-staging-0 two\n")
    said = orchestrate("logs", staging, "staging", "--kept", "--run-id", "frist", "--json")
    assert said.status == 1
    assert "no run frist was kept; did you mean 'first'?" in said.err
    for option in ("--follow", "--host=algo-1", "--every-s=5", "--region=us-east-1", "--profile=p"):
        said = orchestrate("logs", staging, "staging", "--kept", option)
        assert said.status == 2
        assert option.partition("=")[0] in said.err
        assert "jobs in an account" in " ".join(said.err.split())


def test_the_logs_of_a_run_that_failed_have_its_name(
    orchestrate: Command, pipeline: Pipeline, report: RunReport, aws: EmbeddedAws, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.yaml"
    failed = replace(report, run_id="friday", stages=(), calls=())
    Left(keep=False, report=None).writer(pipeline, path, {})(aws, failed)
    log = failed_folder(path, "hostile") / "logs/train/hostile-train-0.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\n")
    for asked in ((), ("--run-id", "friday"), ("--run-id", FAILED)):
        said = orchestrate("logs", path, "evaluate", "--kept", *asked)
        assert "stage evaluate of run friday has started no job" in said.err
    said = orchestrate("logs", path, "train", "--kept", "--run-id", "friday", "--json")
    assert (said.status, said.document["run"]) == (0, "friday")
    said = orchestrate("logs", path, "train", "--kept", "--run-id", "frida", "--json")
    assert "no run frida was kept; did you mean 'friday'?" in said.err
    said = orchestrate("run", path, "--keep", "--run-id", FAILED)
    assert said.status == 2
    assert "can't be kept" in said.err


def test_the_logs_of_an_earlier_run_are_not_those_of_one_that_failed(
    pipeline: Pipeline,
    report: RunReport,
    aws: EmbeddedAws,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, ended = tmp_path / "hostile.yaml", replace(report, stages=(), calls=())
    Left(keep=False, report=None).writer(pipeline, path, {})(aws, ended)
    folder = failed_folder(path, "hostile")
    tell_failure(ended, folder)
    assert f"the whole logs: {folder}" in capsys.readouterr().err
    tell_failure(replace(ended, started=_at(60)), folder)
    assert "the whole logs" not in capsys.readouterr().err


@pytest.mark.parametrize("run_id", ["", "/victim", "/..", "/../..", "/team/friday"])
def test_a_run_is_kept_in_a_folder_of_its_own_alone(
    orchestrate: Command, staging: Path, tmp_path: Path, run_id: str
) -> None:
    victim = tmp_path / "victim/important.txt"
    victim.parent.mkdir()
    victim.write_text("")
    name = f"{tmp_path}{run_id}" if run_id in ("", "/victim") else run_id[1:]
    said = orchestrate("run", staging, "--keep", "--run-id", name)
    assert said.status == 2
    assert "can't be kept" in said.err
    assert victim.exists()


def test_what_cannot_be_written_is_refused_before_the_run(
    orchestrate: Command, staging: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for written in (tmp_path, tmp_path / "file/run.html"):
        said = orchestrate("run", staging, "--report", written)
        assert said.status == 2
        assert "--report" in said.err
    (tmp_path / ".orchestration").write_text("")
    said = orchestrate("run", staging, "--keep")
    assert said.status == 2
    assert "--keep" in said.err


def test_what_cannot_be_written_after_the_run_is_told(
    pipeline: Pipeline,
    report: RunReport,
    aws: EmbeddedAws,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = replace(report, run_id="first", stages=(), calls=())
    kept = run_folder(tmp_path / "hostile.yaml", "hostile", "first")
    kept.mkdir(parents=True)
    for name in (REPORT, "old.log"):
        (kept / name).write_text("")
    written = tmp_path / "run.html"
    written.mkdir()
    write = Left(keep=True, report=written).writer(pipeline, tmp_path / "hostile.yaml", {})
    write(aws, ended)
    said = capsys.readouterr().err
    assert f"kept: {kept}" in said
    assert not (kept / "old.log").exists()
    assert "error: --report could not be written" in said
    shutil.rmtree(kept)
    kept.write_text("")
    write(aws, ended)
    assert "error: --keep could not be written" in capsys.readouterr().err


def test_a_run_in_ones_account_keeps_nothing_here(orchestrate: Command, staging: Path) -> None:
    said = orchestrate("run", staging, "--aws", "--keep")
    assert said.status == 2
    assert "orchestrate logs" in " ".join(said.err.split())
    said = orchestrate("logs", staging, "staging")
    assert said.status == 2
    assert "--kept" in said.err
