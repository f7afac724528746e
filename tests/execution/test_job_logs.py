"""The last lines of a failed job's log stand in the task's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.execution.effects import Request, ServiceError
from orchestration.execution.reading.job_logs import last_lines
from orchestration.execution.reading.tracebacks import MOST_LINES, end_of
from orchestration.expressions import Json

RECORDED = Path(__file__).parents[1] / "data" / "logs" / "torchrun.log"
POLL = Request("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "digits"})


def test_the_last_lines_of_every_host_are_told() -> None:
    sent: list[Request] = []

    def send(request: Request) -> Json:
        sent.append(request)
        if request.operation == "DescribeLogStreams":
            return {"logStreams": [{"logStreamName": f"digits/algo-{n}"} for n in (1, 2)]}
        stream = request.parameters["logStreamName"]
        return {"events": [{"message": f"{stream}: nan\n"}]}

    lines = list(last_lines(POLL, send))
    assert [line for line in lines if line.endswith("nan")] == [
        "digits/algo-1: nan",
        "digits/algo-2: nan",
    ]
    assert sent[0].parameters["logStreamNamePrefix"] == "digits/"


def test_a_long_traceback_is_told_whole() -> None:
    before, after = [f"step {n}" for n in range(90)], [f"  frame {n}" for n in range(40)]
    traceback = ["Traceback (most recent call last):", *after, "ValueError: nan"]
    for lines, shown in (
        ([*before, *traceback, "bye"], [*traceback, "bye"]),
        (before, before[-MOST_LINES:]),
        (
            [*before, *traceback, *before],
            [*traceback, *before[:10], "… (60 lines)", *before[-MOST_LINES:]],
        ),
        (before[:3], before[:3]),
    ):

        def send(request: Request, lines: list[str] = lines) -> Json:
            if request.operation == "DescribeLogStreams":
                return {"logStreams": [{"logStreamName": "digits/algo-1"}]}
            return {"events": [{"message": line} for line in lines]}

        assert list(last_lines(POLL, send))[1:] == shown


def recorded() -> list[str]:
    return RECORDED.read_text(encoding="utf-8").splitlines()


def test_the_traceback_of_a_script_under_torchrun_is_told_once() -> None:
    shown = end_of(recorded())
    at = [number for number, line in enumerate(shown) if "Traceback (most recent" in line]
    assert [shown[number].removeprefix("[rank0]: ") for number in at] == [
        "Traceback (most recent call last):",
        "Traceback (most recent call last):",
    ]
    assert at[0] == 0
    assert shown[4] == "[rank0]: KeyError: 'b'"
    assert shown.count("[rank0]: ValueError: no row for 'b'") == 1
    assert [line for line in shown if "torch/distributed/run.py" in line] == []
    assert shown[-1].endswith("Encountered exit_code 1")


def test_the_rank_that_failed_first_is_told_of_a_host_with_many() -> None:
    first = (
        "[rank3]: Traceback (most recent call last):\n[rank3]:   File x\n[rank3]: ValueError: nan"
    )
    other = first.replace("rank3", "rank1").replace("ValueError: nan", "RuntimeError: peer gone")
    summary = "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)"
    steps = [f"step {n}" for n in range(30)]
    shown = end_of([*first.splitlines(), *other.splitlines(), *steps, *summary.splitlines()])
    assert shown[:4] == [*first.splitlines(), "… (16 lines)"]
    mixed = [
        line for pair in zip(first.split("\n"), other.split("\n"), strict=True) for line in pair
    ]
    assert end_of([*mixed, *steps])[:3] == other.splitlines()


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_a_message_of_several_lines_is_told_whole(prefix: str) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled cuda error",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
        "Last error:",
        "Cuda failure 2 'out of memory'",
    ]
    own = [prefix + line for line in raised]
    launcher = "E1126 22:40:46.843000 11108 torch/distributed/elastic/api.py:1002] failed"
    steps = [f"step {n}" for n in range(30)]
    for after in (launcher, "2026-11-26 22:40:50,266 sagemaker-training-toolkit ERROR", "======"):
        shown = end_of([*own, after, *steps])
        assert shown[:7] == [*own, "… (11 lines)"]
    long = [*own, *(f"{prefix}more {n}" for n in range(90)), *steps]
    assert end_of(long).index(next(line for line in end_of(long) if line.startswith("…"))) == (
        3 + (20 if prefix else 10)
    )


def test_marks_that_the_toolkit_has_moved_from_their_code_are_left_out() -> None:
    frames = ["Traceback (most recent call last):", 'File "train.py", line 24, in main']
    code = 'features, left = table.read(Path(os.environ["SM_CHANNEL_TRAINING"]))'
    error = "KeyError: 'SM_CHANNEL_TRAINING'"
    steps = [f"step {n}" for n in range(30)]
    moved = [*steps, *frames, code, *"~~~~~~~~~~~~~~~~^^^^^", "^^^^^^^^^^^^^^^", error]
    assert end_of(moved) == [*steps[-16:], *frames, code, error]
    beneath = [*frames, f"    {code}", "    ~~~~~~~~~~^^^^^^^^^^^^", error]
    assert end_of(beneath) == beneath


@pytest.mark.parametrize("lines", [["step 1", "killed"], ['ErrorMessage "out of memory"']])
def test_what_has_no_traceback_is_told_by_its_last_lines(lines: list[str]) -> None:
    assert end_of(lines) == lines


def test_what_cannot_be_read_is_no_error() -> None:
    def send(request: Request) -> Any:
        raise ServiceError("AccessDeniedException", "not allowed")

    [line] = last_lines(POLL, send)
    assert "cannot be read: AccessDeniedException" in line


def test_a_job_that_never_ran_has_logged_nothing() -> None:
    def send(request: Request) -> Any:
        raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")

    assert list(last_lines(POLL, send)) == ["digits has logged nothing"]


def test_what_is_no_job_has_no_log() -> None:
    def send(request: Request) -> Any:
        raise AssertionError("asked for a log")

    assert list(last_lines(Request("fsx", "DescribeFileSystems", {}), send)) == []
