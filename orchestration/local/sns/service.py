"""The checks of requests to SNS that moto leaves out.

moto 5.2.5 counts the characters of a message, where SNS counts bytes, those of attributes too.
"""

from __future__ import annotations

from orchestration.checks import documented
from orchestration.checks.patterns import matches
from orchestration.local.account.protocol import Checked, JsonObject, Request
from orchestration.local.account.rules import broken
from orchestration.local.sns.rules import RULES

_VALUES = ("DataType", "StringValue")


class Sns(Checked):
    """SNS: moto answers what these checks let pass."""

    def __init__(self) -> None:
        super().__init__("sns", "ValidationError")

    def check_values(self, request: Request) -> None:
        """Raise SNS's error for a message that it does not take."""
        if request.operation == "Publish":
            _check_message(request.parameters)


def _check_message(values: JsonObject) -> None:
    if not values.get("Message"):
        raise broken(RULES, "messages have text")
    if not matches(documented.SUBJECT, values.get("Subject", "-")):
        raise broken(RULES, "subjects")
    size = len(values["Message"].encode())
    for name, attribute in (values.get("MessageAttributes") or {}).items():
        texts = [name, *(attribute.get(field, "") for field in _VALUES)]
        size += sum(len(text.encode()) for text in texts)
        # Four characters of base64 are three bytes.
        size += len(attribute.get("BinaryValue", "").rstrip("=")) * 3 // 4
    if size > documented.LONGEST_MESSAGE:
        raise broken(RULES, "messages at most")
