"""``logs``: what a stage's jobs have logged, whatever runs the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.run import run
from orchestration.local.run.report import On
from tests.cli.conftest import Command

pytestmark = pytest.mark.slow  # starts the embedded AWS

NAME = "talkative"
PIPELINE = """\
name: talkative
parameters: {bucket: {}}
workspace: {join: ["s3://", {parameter: bucket}, /talkative]}
stages:
  staging:
    kind: data_staging
    source: s3://talkative-data/set
  train:
    kind: training_job
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/training:1
    cluster: {instance_type: ml.m5.xlarge, instance_count: 2}
    channels: {training: {ref: staging.location}}
    max_runtime_s: 3600
    local: {command: [python3, train.py], directory: .}
"""
SCRIPT = "for number in range(1, 6):\n    print(f'epoch={number} <b>bold</b>', flush=True)\n"


@dataclass(frozen=True)
class Runs:
    """A pipeline that has run twice: as an execution and from this machine."""

    file: Path
    execution: str


@pytest.fixture(scope="module")
def runs(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    path = tmp_path_factory.mktemp("talkative") / "talkative.yaml"
    path.write_text(PIPELINE)
    path.with_name("train.py").write_text(SCRIPT)
    data = path.with_name("one.txt")
    data.write_text("1")
    drivers: tuple[tuple[On, str], ...] = (("step-functions", "friday"), ("direct", "saturday"))
    for on, name in drivers:
        report = run(
            Pipeline.load(path), on=on, parameters={"bucket": NAME}, aws=aws, run_id=name,
            uploads={"s3://talkative-data/set/one.txt": data},
        )  # fmt: skip
        assert report.state == "succeeded", report.cause
    return Runs(path, f"arn:aws:states:{aws.region}:123456789012:execution:{NAME}:friday")


def test_every_line_of_every_host_is_printed(
    runs: Runs, account: EmbeddedAws, orchestrate: Command
) -> None:
    for name in (runs.execution, f"{NAME}:friday", "saturday"):
        said = orchestrate("logs", runs.file, "train", "--run-id", name, "--follow")
        assert said.status == 0, said.err
        lines = [line.split(" ", 3) for line in said.out.splitlines() if "epoch=" in line]
        assert [line[1] for line in lines] == ["algo-1"] * 5 + ["algo-2"] * 5
        assert {line[0].rpartition("-")[0] for line in lines} == {f"{NAME}-train"}
        assert [line[3] for line in lines[:5]] == [
            f"epoch={number} <b>bold</b>" for number in range(1, 6)
        ]


def test_one_host_and_the_last_lines_as_json(
    runs: Runs, account: EmbeddedAws, orchestrate: Command
) -> None:
    command = ("logs", runs.file, "train", "--run-id", "saturday", "--json")
    [job] = orchestrate(*command, "--host", "algo-2", "--tail", "3").document["jobs"]
    [stream] = job["streams"]
    assert (job["status"], stream["host"]) == ("Completed", "algo-2")
    everything = orchestrate(*command).document["jobs"][0]["streams"][1]["events"]
    assert (len(everything) >= 5, stream["events"]) == (True, everything[-3:])


def test_a_stage_without_a_job_a_wrong_stage_and_a_run_that_is_not_there(
    runs: Runs, account: EmbeddedAws, orchestrate: Command
) -> None:
    wrong = orchestrate("logs", runs.file, "trian", "--run-id", "saturday")
    assert (wrong.status, "did you mean 'train'?" in wrong.err) == (2, True)
    endless = orchestrate("logs", runs.file, "train", "--run-id", "x", "--follow", "--json")
    assert (endless.status, "--follow" in endless.err) == (2, True)
    for stage, name in (("staging", "saturday"), ("train", "sunday")):
        none = orchestrate("logs", runs.file, stage, "--run-id", name)
        assert (none.status, none.out) == (1, "")
        assert f"stage {stage} of run {name} of {NAME} has started no job (yet)" in none.err
    silent = orchestrate("logs", runs.file, "train", "--run-id", "saturday", "--host", "algo-3")
    assert (silent.status, "nothing is logged on algo-3" in silent.err) == (0, True)


def test_a_refusal_of_aws_is_an_error_without_a_traceback(
    runs: Runs, account: EmbeddedAws, orchestrate: Command
) -> None:
    account.inject(Fault("logs", "GetLogEvents", "AccessDeniedException", "not authorized"))
    said = orchestrate("logs", runs.file, "train", "--run-id", "saturday")
    assert said.status == 1
    assert "error: the log of talkative-train-" in said.err
    assert "not authorized" in said.err
    unknown = orchestrate("logs", runs.file, "train", "--run-id", f"{NAME}:nobody")
    assert (unknown.status, "execution talkative:nobody is not known" in unknown.err) == (1, True)
