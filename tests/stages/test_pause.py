"""A stage that only waits, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.errors import PipelineError
from tests.backends import definitions


def pipeline(duration: Any, message: Any = "m") -> Pipeline:
    publish = {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": "arn:aws:sns:us-east-1:123456789012:news", "Message": message},
        "after": ["settle"],
    }
    return Pipeline.parse(
        {
            "name": "waiting",
            "workspace": "s3://bucket/runs",
            "parameters": {"seconds": {"type": "number"}},
            "stages": {"settle": {"kind": "pause", "duration_s": duration}, "tell": publish},
        }
    )


def test_a_pause_is_one_state() -> None:
    states = definitions.states(stepfunctions.render(pipeline(300).lower()))
    wait = states["settle-wait"]
    assert (wait["Type"], wait["Seconds"]) == ("Wait", 300)
    assert wait["Next"] == "tell-call"


def test_a_length_known_only_in_a_run_is_bounded_before_the_wait() -> None:
    states = definitions.states(stepfunctions.render(pipeline({"parameter": "seconds"}).lower()))
    assert states["settle-wait"]["Seconds"] == "{% $ceil($parameters.seconds) %}"
    [rule] = states["settle-bounds"]["Choices"]
    assert rule["Next"] == "settle-wait"


@pytest.mark.parametrize(
    ("duration", "problem"),
    [
        (0, "expected a whole number from 1 on, or a reference, got 0"),
        (1.5, "expected a whole number from 1 on, or a reference, got 1.5"),
        ("5m", "expected a whole number from 1 on, or a reference, got '5m'"),
        (2_592_001, "is 2592001; the most is 2592000 (30 days)"),
        ({"ref": "tell.message"}, "stage 'tell' has no output"),
    ],
)
def test_lengths_that_no_backend_can_wait_are_refused(duration: Any, problem: str) -> None:
    with pytest.raises(PipelineError) as refused:
        pipeline(duration).lower()
    assert f"stages.settle.duration_s: {problem}" in str(refused.value)


def test_a_pause_has_no_outputs() -> None:
    with pytest.raises(PipelineError, match="stage 'settle' has no output 'end'"):
        pipeline(60, {"ref": "settle.end"}).lower()
