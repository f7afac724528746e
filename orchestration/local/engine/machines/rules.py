"""The rules of Step Functions that a pipeline can break and moto does not enforce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_RECORDED = (
    "issue: https://github.com/localstack/localstack/blob/main/tests/aws/services/stepfunctions/v2/"
)

RULES: Final[Mapping[str, Rule]] = {
    "names": Rule(
        "InvalidName",
        "Invalid Name: '{name}'",
        f"{_RECORDED}test_sfn_api_activities.snapshot.json, of activities; of executions: "
        "model: StartExecutionInput.name",
    ),
    "inputs are JSON": Rule(
        "InvalidExecutionInput",
        "Invalid State Machine Execution Input: '{reason}'",
        f"{_RECORDED}test_sfn_api.snapshot.json",
    ),
    "tags at most": Rule(
        "TooManyTags",
        "A resource can have 50 tags at most; {machine} would have {count}.",
        "model: TooManyTags; number: "
        "https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html; wording assumed",
    ),
}
