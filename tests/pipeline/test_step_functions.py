"""The settings of a pipeline's state machine, before anything is deployed."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError, StepFunctionsOptions
from tests.pipeline.building import job

ROLE = "arn:aws:iam::111122223333:role/platform/runner"


def pipeline(options: Any, **fields: Any) -> Pipeline:
    given = {"name": "p", "workspace": "s3://b/p", "stages": [job("a")], **fields}
    return Pipeline.parse({**given, "step_functions": options})


def test_a_pipeline_names_the_role_of_its_state_machine() -> None:
    made = pipeline({"role": ROLE}, region="us-east-1")
    assert made.step_functions == StepFunctionsOptions(role=ROLE)
    # The definition holds no role, so it is the same without.
    assert made.lower() == pipeline({}, region="us-east-1").lower()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"role": "runner"}, r"step_functions\.role: expected arn:aws:iam::<account>:role/<name>"),
        (
            {"role": {"parameter": "role"}},
            r"step_functions\.role: .* when the pipeline is deployed",
        ),
        ({"rol": ROLE}, r"step_functions\.rol: is unknown; did you mean 'role'"),
        (
            {"role": ROLE.replace("aws", "aws-cn", 1)},
            r"step_functions\.role: .* is in partition aws-cn, and the pipeline runs in us-east-1",
        ),
    ],
)
def test_a_role_that_no_state_machine_can_have_is_refused(options: Any, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        pipeline(options, region="us-east-1")


def test_a_wrong_role_does_not_hide_other_mistakes() -> None:
    with pytest.raises(PipelineError) as refused:
        pipeline({"role": "runner"}, region="us-east-1", tags={"aws:own": "x"})
    assert {problem.field for problem in refused.value.problems} == {
        "step_functions.role",
        "tags.aws:own",
    }
