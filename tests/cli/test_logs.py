"""``logs``: what a stage's jobs have logged, whatever runs the pipeline."""

from __future__ import annotations

import pytest

from orchestration.local import EmbeddedAws, Fault
from tests.cli.conftest import Command
from tests.cli.talkative import NAME, Talkative

pytestmark = pytest.mark.slow  # starts the embedded AWS


def test_every_line_of_every_host_is_printed(
    runs: Talkative, account: EmbeddedAws, orchestrate: Command
) -> None:
    for name in (runs.execution, "friday", "saturday"):
        said = orchestrate("logs", runs.file, "train", "--run-id", name, "--follow")
        assert said.status == 0, said.err
        lines = [line.split(" ", 3) for line in said.out.splitlines() if "epoch=" in line]
        assert [line[1] for line in lines] == ["algo-1"] * 5 + ["algo-2"] * 5
        assert {line[0].rpartition("-")[0] for line in lines} == {f"{NAME}-train"}
        assert [line[3] for line in lines[:5]] == [
            f"epoch={number} <b>bold</b>" for number in range(1, 6)
        ]


def test_one_host_and_the_last_lines_as_json(
    runs: Talkative, account: EmbeddedAws, orchestrate: Command
) -> None:
    command = ("logs", runs.file, "train", "--run-id", "saturday", "--json")
    [job] = orchestrate(*command, "--host", "algo-2", "--tail", "3").document["jobs"]
    [stream] = job["streams"]
    assert (job["status"], stream["host"]) == ("Completed", "algo-2")
    everything = orchestrate(*command).document["jobs"][0]["streams"][1]["events"]
    assert (len(everything) >= 5, stream["events"]) == (True, everything[-3:])


def test_a_stage_without_a_job_a_wrong_stage_and_a_run_that_is_not_there(
    runs: Talkative, account: EmbeddedAws, orchestrate: Command
) -> None:
    wrong = orchestrate("logs", runs.file, "trian", "--run-id", "saturday")
    assert (wrong.status, "did you mean 'train'?" in wrong.err) == (2, True)
    endless = orchestrate("logs", runs.file, "train", "--run-id", "x", "--follow", "--json")
    assert (endless.status, "--follow" in endless.err) == (2, True)
    for stage, name in (("staging", "saturday"), ("train", "monday")):
        none = orchestrate("logs", runs.file, stage, "--run-id", name)
        assert (none.status, none.out) == (1, "")
        assert f"stage {stage} of run {name} of {NAME} has started no job (yet)" in none.err
    silent = orchestrate("logs", runs.file, "train", "--run-id", "saturday", "--host", "algo-3")
    assert (silent.status, "nothing is logged on algo-3" in silent.err) == (0, True)


def test_a_refusal_of_aws_is_an_error_without_a_traceback(
    runs: Talkative, account: EmbeddedAws, orchestrate: Command
) -> None:
    account.inject(Fault("logs", "GetLogEvents", "AccessDeniedException", "not authorized"))
    said = orchestrate("logs", runs.file, "train", "--run-id", "saturday")
    assert said.status == 1
    assert "error: the log of talkative-train-" in said.err
    assert "not authorized" in said.err
    unknown = orchestrate("logs", runs.file, "train", "--run-id", f"{NAME}:nobody")
    assert (unknown.status, "execution talkative:nobody is not known" in unknown.err) == (1, True)
