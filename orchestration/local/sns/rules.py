"""The rules of SNS that a pipeline can break."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "InvalidParameter"
_RECORDED = (
    "issue: https://github.com/localstack/localstack/blob/main/tests/aws/services/sns/"
    "test_sns.snapshot.json"
)

RULES: Final[Mapping[str, Rule]] = {
    "messages have text": Rule(_REFUSED, "Invalid parameter: Empty message", _RECORDED),
    "messages at most": Rule(
        _REFUSED,
        "Invalid parameter: Message too long",
        f"{_RECORDED}; number: PublishInput.Message in botocore's model",
    ),
    "subjects": Rule(
        _REFUSED,
        "Invalid parameter: Subject",
        f"{_RECORDED}, of an empty one; others: PublishInput.Subject in botocore's model",
    ),
}
