"""A stage that fails the run where its condition holds."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.errors import PipelineError
from tests.backends import definitions

WHEN = {"less": [{"parameter": "rows"}, 10]}
CAUSE = {"join": ["only ", {"parameter": "rows"}, " rows"]}


def pipeline(*, wait: Any = 1, **fields: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "guarded",
            "workspace": "s3://bucket/runs",
            "parameters": {"rows": {"type": "number"}},
            "stages": {
                "few": {"kind": "fail", **fields},
                "wait": {"kind": "pause", "after": ["few"], "duration_s": wait},
            },
        }
    )


def test_it_is_one_state_behind_its_condition() -> None:
    lowered = pipeline(when=WHEN, cause=CAUSE, error="TooFewRows").lower()
    states = definitions.states(stepfunctions.render(lowered))
    [rule] = states["few-when"]["Choices"]
    assert rule["Next"] == "few-fail"
    assert states["few-when"]["Default"] == "wait-wait"
    assert states["few-fail"] == {
        "Type": "Fail",
        "Error": "TooFewRows",
        "Cause": "{% 'only ' & $parameters.rows & ' rows' %}",
    }


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"cause": "no"}, "stages.few.when: is needed, else every run fails"),
        ({"when": WHEN}, "stages.few.cause: is required"),
        (
            {"when": WHEN, "cause": "no", "error": "too few"},
            "stages.few.error: expected text that matches",
        ),
    ],
)
def test_what_fails_always_or_says_nothing_is_refused(fields: Any, problem: str) -> None:
    with pytest.raises(PipelineError) as refused:
        pipeline(**fields).lower()
    assert problem in str(refused.value)


def test_nothing_reads_from_it() -> None:
    with pytest.raises(PipelineError, match="stage 'few' has no output 'cause'"):
        pipeline(when=WHEN, cause="no", wait={"ref": "few.cause"}).lower()
